"""The platform's retries are confirmed to it with an endpoint's headers (wire sheet 8.3)."""

import pytest

from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import parse_time
from tests.transport.recording_observer import rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"
RETRIED = {h.RETRY_UNIQUE_MESSAGE_ID: "7e0fd852-b372-31c8-7e67-68eec671cb06"}


def test_acknowledgement_has_the_headers_of_a_recorded_one(endpoint, handlers, make_endpoint, recording):
    make_endpoint("Platform")
    handlers.handle(PLACE)(lambda body, context: None)
    endpoint.send("Sales", {}, type=PLACE, headers={**RETRIED, h.RETRY_ACKNOWLEDGEMENT_QUEUE: '"public"."Platform"'})
    endpoint.start()
    (row,) = until(lambda: rows(endpoint.dsn, "Platform"), 20)
    recorded = [h.parse(each.headers) for each in rows(recording, "error")]
    theirs = next(each for each in recorded if h.RETRY_SUCCESSFUL in each and "traceparent" not in each)
    headers = h.parse(row.headers)
    assert set(headers) == set(theirs)
    assert headers[h.RETRY_UNIQUE_MESSAGE_ID] == RETRIED[h.RETRY_UNIQUE_MESSAGE_ID]
    assert parse_time(headers[h.RETRY_SUCCESSFUL])
    assert (row.body, row.expires) == (b"", None)


@pytest.mark.parametrize("queue", [None, "", "ops."])
def test_without_a_queue_for_it_there_is_none(endpoint, handlers, spy, queue):
    handlers.handle(PLACE)(lambda body, context: None)
    endpoint.send("Sales", {}, type=PLACE, headers={**RETRIED, h.RETRY_ACKNOWLEDGEMENT_QUEUE: queue})
    endpoint.start()
    until(lambda: spy.counts["handled"] == 1, 20)
    assert rows(endpoint.dsn, "error") == []


def test_a_failed_one_confirms_nothing(endpoint, handlers, make_endpoint):
    make_endpoint("Platform")

    @handlers.handle(PLACE)
    def fail(body, context):
        raise ZeroDivisionError

    endpoint.send("Sales", {}, type=PLACE, headers={**RETRIED, h.RETRY_ACKNOWLEDGEMENT_QUEUE: "Platform"})
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"), 20)
    assert rows(endpoint.dsn, "Platform") == []

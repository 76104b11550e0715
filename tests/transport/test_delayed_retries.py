"""Delayed retries: 3, after 10, 20 and 30 s, in rounds of six attempts (wire sheet 8.1)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import IncomingMessage, Unrecoverable
from pgqueue_admin.transport.failure import failure_of
from pgqueue_admin.transport.recoverability.dead_lettering import faulted
from pgqueue_admin.transport.recoverability.policy import done, later, may_come_back
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.header_composer import WIRE_VERSION
from pgqueue_admin.transport.wire.wire_times import parse_time, wire_time
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"
DEFAULT = EndpointSettings()
SHORT = replace(QUICK, delayed_retries=3, delayed_retry_step=0.1, immediate_retries=1)
LONG = replace(QUICK, delayed_retries=3, immediate_retries=0)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def received(**headers):
    return IncomingMessage(Address("public", "Sales"), None, 1, False, "", b"{}", {h.MESSAGE_ID: "m", **headers})


def failure(error=None):
    return failure_of(error or RuntimeError("no"), "Sales", Address("public", "Sales"), recoverable=True)


@pytest.mark.parametrize("own", [{}, {h.TIME_SENT: "2026-01-01 00:00:00:000000 Z", h.VERSION: "9.0.0"}])
def test_missing_time_and_version_headers_are_added_when_sent_on(own):
    """On every dispatch, whatever the destination; existing headers are unchanged."""
    message = received(**own)
    at = Address("public", "Sales")
    refused = failure_of(RuntimeError("no"), "Sales", at, recoverable=True, forward_to="Billing")
    before = datetime.now(UTC) - timedelta(seconds=1)
    sent = [later(message, timedelta(seconds=10), '"public"."Sales"').headers]
    sent += [faulted(postgresql(), message, each) for each in (failure(), refused)]
    for headers in sent:
        if own:
            assert own.items() <= headers.items()
        else:
            assert before <= parse_time(headers[h.TIME_SENT]) <= datetime.now(UTC) + timedelta(seconds=1)
            assert headers[h.VERSION] == WIRE_VERSION


def test_exception_data_does_not_replace_the_message_id():
    at, data = Address("public", "Sales"), {"Message ID": "another", "Order": "7"}
    failed = failure_of(RuntimeError("no"), "Sales", at, recoverable=True, data=data)
    headers = faulted(postgresql(), received(), failed)
    assert headers[h.EXCEPTION_DATA + "Message ID"] == "m"
    assert headers[h.EXCEPTION_DATA + "Order"] == "7"
    assert h.INNER_EXCEPTION_TYPE not in headers, "there was no other error behind it"


@pytest.fixture
def failing(handlers):
    calls = []

    @handlers.handle(PLACE)
    def place(order, context):
        calls.append((datetime.now(UTC), context.headers))
        raise RuntimeError("no")

    return calls


def put_aside(endpoint):
    with endpoint.connect() as connection:
        return connection.all('select headers, body, due, due - now() as left from "Sales.Delayed"')


@pytest.mark.parametrize(
    ("headers", "comes_back"),
    [
        ({}, True),
        ({h.RETRIES: "2"}, True),
        ({h.RETRIES: "3"}, False),
        ({h.RETRIES: "many"}, True),
        *(({h.RETRIES: said}, False) for said in (" 3\t", "+3", "003", "3\0", "2147483647")),
        *(({h.RETRIES: said}, True) for said in ("3_0", "٣", "\u00a03", "-3", "3.0", "2147483648", "9" * 5000)),
        ({h.RETRIES: None}, True),
        ({h.RETRIES_TIMESTAMP: wire_time(NOW - timedelta(hours=23, minutes=59))}, True),
        ({h.RETRIES_TIMESTAMP: wire_time(NOW - timedelta(days=1, seconds=1))}, False),
        ({h.RETRIES_TIMESTAMP: "2001-01-01T00:00:00Z"}, True),  # as in the original: an invalid time is not old
    ],
)
def test_until_the_count_is_reached_or_a_day_is_over(headers, comes_back):
    assert may_come_back(received(**headers), failure(), DEFAULT, NOW) is comes_back


def test_delayed_retry_has_an_id_and_starts_a_new_trace():
    """If the sender gave no id, it keeps that of its old row."""
    message = replace(received(**{h.MESSAGE_ID: None, h.TRACE_PARENT: "00-1-2-01"}), row_id="row")
    put = later(message, timedelta(seconds=10), '"public"."Sales"')
    assert (put.headers[h.MESSAGE_ID], put.headers[h.START_NEW_TRACE]) == ("row", "True")
    assert h.START_NEW_TRACE not in later(received(), timedelta(seconds=10), '"public"."Sales"').headers


def test_not_for_what_is_unrecoverable():
    assert not may_come_back(received(), failure(Unrecoverable("bad")), DEFAULT, NOW)


@pytest.mark.parametrize(("before", "seconds"), [(None, 10), ("1", 20), ("2", 30)])
def test_each_waits_longer(before, seconds):
    message = received(**({h.RETRIES: before} if before else {}))
    put = later(message, timedelta(seconds=seconds), '"public"."Sales"')
    assert put.delay == timedelta(seconds=seconds)
    assert put.headers[h.RETRIES] == str(done(message) + 1)


def test_the_time_it_was_to_be_delivered_first_stays():
    at = wire_time(NOW)
    put = later(received(**{h.DELIVER_AT: at, h.FL_RETRIES: "4"}), timedelta(seconds=10), '"public"."Sales"')
    assert put.headers[h.DELIVER_AT] == at
    assert h.FL_RETRIES not in put.headers


def test_a_row_put_aside_has_the_shape_of_a_recorded_one(endpoint, failing, recording, connect, spy):
    endpoint.apply(LONG)
    message_id = endpoint.send("Sales", {"n": 1}, type=PLACE)
    endpoint.start()
    until(lambda: put_aside(endpoint))
    finished(endpoint)
    assert rows(endpoint.dsn, "Sales") == []
    (row,) = put_aside(endpoint)
    ours = h.parse(row.headers)
    recorded = h.parse(connect(recording).value('select headers from "Billing.Delayed" limit 1'))
    assert set(ours) == set(recorded)
    assert (ours[h.MESSAGE_ID], ours[h.RETRIES], ours[h.FORWARD_DESTINATION]) == (message_id, "1", '"public"."Sales"')
    since = parse_time(ours[h.RETRIES_TIMESTAMP])
    assert parse_time(ours[h.DELIVER_AT]) - since == timedelta(seconds=10)
    assert row.left < timedelta(seconds=10)
    assert row.body == b'{"n":1}'
    assert spy.counts["retried"] == 1


def test_rounds_of_attempts_and_then_the_error_queue(endpoint, failing, spy):
    """Two attempts a round, four rounds; the error copy has the headers that the original leaves."""
    endpoint.apply(SHORT)
    message_id = endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    finished(endpoint)
    assert len(failing) == 8
    assert [headers.get(h.RETRIES) for _, headers in failing] == [None, None, "1", "1", "2", "2", "3", "3"]
    starts = [at for at, _ in failing[::2]]
    waits = [(after - before).total_seconds() for before, after in pairwise(starts)]
    assert all(wait >= least for wait, least in zip(waits, (0.1, 0.2, 0.3), strict=True))
    headers = h.parse(rows(endpoint.dsn, "error")[0].headers)
    assert headers[h.MESSAGE_ID] == message_id
    assert h.RETRIES not in headers
    assert h.FORWARD_DESTINATION not in headers
    assert parse_time(headers[h.RETRIES_TIMESTAMP])
    assert (spy.counts["failed"], spy.counts["retried"]) == (8, 7)
    assert put_aside(endpoint) == rows(endpoint.dsn, "Sales") == []


def test_delayed_retry_that_succeeds_leaves_nothing(endpoint, handlers):
    calls = []

    @handlers.handle(PLACE)
    def place(order, context):
        calls.append(context.headers.get(h.RETRIES))
        if calls[-1] is None:
            raise RuntimeError("not yet")

    endpoint.apply(SHORT)
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: "1" in calls)
    until(lambda: not rows(endpoint.dsn, "Sales"))
    assert rows(endpoint.dsn, "error") == put_aside(endpoint) == []


def test_an_old_timestamp_ends_it_at_once(endpoint, failing):
    """As after a retry by hand that did not strip it (wire sheet 8.3)."""
    endpoint.apply(LONG)
    endpoint.send("Sales", {}, type=PLACE, headers={h.RETRIES_TIMESTAMP: "2020-01-01 00:00:00:000000 Z"})
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    assert put_aside(endpoint) == []


def test_an_unreadable_message_is_not_delayed(endpoint, failing):
    endpoint.apply(LONG)
    endpoint.send("Sales", b"no JSON", type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))


def test_without_a_delayed_table_it_is_exhausted(endpoint, failing, connection, caplog):
    """Tables created by an older installer or by hand: no message may loop because of that."""
    connection.run('drop table "Sales.Delayed"')
    endpoint.apply(LONG)
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    assert "gets no delayed retry" in caplog.text
    assert len(failing) == 1


def test_a_recorded_last_round_ends_in_the_error_queue(recorded_database, make_endpoint, failing, connect):
    """Thirty that a real endpoint delayed for the first time, with one delayed retry allowed."""
    connection = connect(recorded_database)
    connection.run('truncate "Billing", "error"')
    connection.run("update \"Billing.Delayed\" set due = now() - interval '1 s'")
    endpoint = make_endpoint("Billing", recorded_database, settings=replace(LONG, delayed_retries=1))
    for command in ("ChargeCard", "RefundCard"):
        endpoint.handlers.handle(f"Shop.Messages.Commands.{command}")(lambda body, context: 1 / 0)
    old = "2026-11-20"
    endpoint.start()
    until(lambda: len(rows(recorded_database, "error")) == 30)
    headers = [h.parse(row.headers) for row in rows(recorded_database, "error")]
    assert all(each[h.RETRIES_TIMESTAMP].startswith(old) and h.RETRIES not in each for each in headers)

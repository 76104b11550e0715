"""Copies of processed messages (wire sheet 2.5, 7.2, 8.3)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pgqueue_admin.transport.settings import SettingsRefused
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import parse_time
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, insert, rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"
AUDITED = replace(QUICK, concurrency=1, audit_queue="audit")
ACKNOWLEDGE = h.RETRY_ACKNOWLEDGEMENT_QUEUE


@pytest.fixture
def endpoint(make_endpoint, handlers):
    handlers.handle(PLACE)(lambda order, context: None)
    return make_endpoint(settings=AUDITED)


def drained(endpoint):
    """The audit queue after all messages are handled; in mode none the queue is empty before that."""
    endpoint.start()
    until(lambda: not rows(endpoint.dsn, "Sales"))
    finished(endpoint)
    return rows(endpoint.dsn, "audit")


def test_a_copy_has_the_shape_of_a_recorded_one(endpoint, recording):
    message_id = endpoint.send("Sales", {"n": 1}, type=PLACE)
    (sent,) = rows(endpoint.dsn, "Sales")
    (copy,) = drained(endpoint)
    ours = h.parse(copy.headers)
    recorded = h.parse(rows(recording, "audit")[0].headers)
    assert set(ours) == set(recorded)
    assert h.parse(sent.headers).items() <= ours.items()
    assert (ours[h.MESSAGE_ID], ours[h.PROCESSING_ENDPOINT]) == (message_id, "Sales")
    assert copy.body == sent.body
    assert copy.id != sent.id
    assert copy.expires is None
    started, ended = (parse_time(ours[name]) for name in (h.PROCESSING_STARTED, h.PROCESSING_ENDED))
    assert parse_time(ours[h.TIME_SENT]) <= started <= ended


@pytest.mark.parametrize("own", ["Sales", '"public"."Sales"'])
@pytest.mark.parametrize("what", ["audit_queue", "error_queue"])
def test_its_own_queue_is_refused(make_endpoint, own, what):
    """One message would be processed endlessly."""
    endpoint = make_endpoint(settings=replace(AUDITED, audit_queue="copies"))
    with pytest.raises(SettingsRefused, match="is the endpoint's own"):
        endpoint.apply(replace(AUDITED, **{what: own}))


@pytest.mark.parametrize("what", ["audit_queue", "error_queue"])
def test_instance_queue_is_refused_as_audit_or_error_queue(make_endpoint, what):
    with pytest.raises(SettingsRefused, match="is the endpoint's own"):
        make_endpoint(instance="i1", settings=replace(AUDITED, **{what: '"Sales.i1"'}))


def test_an_error_queue_that_is_not_used_may_have_its_name(make_endpoint):
    """An endpoint that archives messages from ``error``, and one that only sends under that name."""
    archive = replace(QUICK, on_exhausted="archive")
    make_endpoint("error", settings=archive, exhausted=lambda connection, message, failure: None)
    make_endpoint("error", send_only=True)
    with pytest.raises(SettingsRefused, match="error_queue 'error' is the endpoint's own"):
        make_endpoint("error")


def test_copies_may_expire(endpoint):
    """The row expires; no header says so, as in recorded copies."""
    endpoint.apply(replace(AUDITED, audit_ttbr=timedelta(days=2).total_seconds()))
    endpoint.send("Sales", {}, type=PLACE)
    (copy,) = drained(endpoint)
    assert h.TIME_TO_BE_RECEIVED not in h.parse(copy.headers)
    with endpoint.connect() as connection:
        left = connection.value("select expires - now() at time zone 'utc' from audit")
    assert timedelta(days=1, hours=23) < left <= timedelta(days=2)


@pytest.mark.parametrize("mode", ["sends_atomic_with_receive", "receive_only", "none"])
def test_exactly_what_was_handled_is_copied(endpoint, handlers, mode):
    handlers.handle("Shop.Bad")(lambda order, context: 1 / 0)
    endpoint.apply(replace(AUDITED, transaction_mode=mode, immediate_retries=0))
    endpoint.send("Sales", {}, type="Shop.Bad")
    endpoint.send("Sales", {}, type=PLACE)
    copies = drained(endpoint)
    assert len(rows(endpoint.dsn, "error")) == 1
    assert [h.parse(copy.headers)[h.ENCLOSED_MESSAGE_TYPES] for copy in copies] == [PLACE]


def test_control_and_empty_messages_are_copied(endpoint):
    """Wire sheet 2.5. A message without an id or a time gets both in its copy."""
    row_id = insert(endpoint.dsn, "Sales", "{}", b"")
    insert(endpoint.dsn, "Sales", h.dump({h.CONTROL_MESSAGE: "True"}), b"x")
    empty, control = drained(endpoint)
    headers = h.parse(empty.headers)
    assert headers[h.MESSAGE_ID] == str(row_id)
    assert parse_time(headers[h.TIME_SENT]) >= parse_time(headers[h.PROCESSING_ENDED])
    assert (empty.body, control.body) == (b"", b"x")


@pytest.mark.parametrize("name", ["Sales;", "x'; commit; --"])
def test_a_queue_whose_name_looks_like_several_statements(make_endpoint, handlers, spy, name):
    """The last send and the audit copy go with the commit, as for any other queue."""
    endpoint = make_endpoint(name, settings=AUDITED)
    make_endpoint("Billing")
    handled = []

    @handlers.handle(PLACE)
    def place(order, context):
        handled.append(order)
        context.send("Billing", order, type="Shop.Charge")

    endpoint.send(name, 1, type=PLACE)
    endpoint.start()
    until(lambda: not rows(endpoint.dsn, name))
    finished(endpoint)
    assert (handled, spy.errors, spy.counts["handled"]) == ([1], [], 1)
    assert [row.body for row in rows(endpoint.dsn, "Billing")] == [b"1"]
    assert len(rows(endpoint.dsn, "audit")) == 1


def test_expired_messages_leave_no_copy(endpoint, connection, spy):
    endpoint.send("Sales", {}, type=PLACE, ttbr=timedelta(seconds=30))
    connection.run("update \"Sales\" set expires = now() at time zone 'utc'")
    assert drained(endpoint) == []
    assert spy.counts["expired"] == 1


def test_a_copy_that_cannot_be_made_fails_the_message(endpoint, connection):
    """As in the original: a message without its copy is not processed."""
    connection.run("drop table audit")
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    assert "audit" in h.parse(rows(endpoint.dsn, "error")[0].headers)[h.EXCEPTION_MESSAGE]


@pytest.mark.parametrize(("asked", "said"), [({}, None), ({ACKNOWLEDGE: '"public"."error"'}, "true")])
def test_a_copy_says_that_the_platform_was_told(endpoint, asked, said):
    """Wire sheet 8.3: otherwise the platform's audit instance would confirm the retry itself."""
    endpoint.send("Sales", {}, type=PLACE, headers={h.RETRY_UNIQUE_MESSAGE_ID: "7e0fd852", **asked})
    (copy,) = drained(endpoint)
    assert h.parse(copy.headers).get(h.RETRY_ACKNOWLEDGEMENT_SENT) == said
    assert len(rows(endpoint.dsn, "error")) == len(asked)

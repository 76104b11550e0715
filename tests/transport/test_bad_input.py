"""Recorded and hand-made messages that cannot be processed: each ends in some queue, none stops the endpoint."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, insert, rows
from tests.waiting import until

ARCHIVING = replace(QUICK, on_exhausted="archive", concurrency=1)
PLACE = "Shop.PlaceOrder"


@pytest.fixture
def graveyard():
    return []


@pytest.fixture
def drain(recorded_database, handlers, spy, graveyard):
    """Receive a recorded queue until it is empty, one message at a time; unprocessable ones go to ``graveyard``."""
    started = []
    with postgresql().connect(
        recorded_database, for_handlers=True
    ) as connection:  # delayed messages have come due since the recording
        for delayed in ('"Billing.Delayed"', '"Legacy"."Invoicing.Delayed"'):
            connection.run(f"update {delayed} set due = 'infinity'")

    def drain(name, schema="public", settings=ARCHIVING):
        endpoint = Endpoint(
            name,
            recorded_database,
            schema=schema,
            settings=settings,
            handlers=handlers,
            observer=spy,
            exhausted=lambda connection, message, failure: graveyard.append((message, failure)),
        )
        started.append(endpoint)
        endpoint.start()
        until(lambda: not rows(recorded_database, name, schema), what=f"{name} is empty")
        endpoint.stop()

    yield drain
    for endpoint in started:
        endpoint.stop(0)


@pytest.mark.parametrize(
    ("queue", "dead", "headers_lost"),
    [
        ("Poison.MalformedHeaders", 10, 9),  # the empty text is no headers, so no type
        ("Poison.NullHeaders", 1, 1),  # loops for ever in the original, without a log line
        ("Poison.WideSeq", 3, 0),
        ('Zażółć "gęślą" queue', 1, 0),
    ],
)
@pytest.mark.parametrize("batch_size", [1, 20])
def test_recorded_poison_is_put_away(drain, graveyard, spy, queue, dead, headers_lost, batch_size):
    drain(queue, settings=replace(ARCHIVING, batch_size=batch_size))
    assert len(graveyard) == dead == spy.counts["failed"]
    assert sum(message.headers_lost for message, _ in graveyard) == headers_lost
    assert all(failure.unreadable or failure.exception_type.endswith("NoHandler") for _, failure in graveyard)
    assert spy.counts["retried"] == 0


def test_a_null_body_does_not_stop_the_queue(drain, graveyard):
    """It stops the original for good (wire sheet 2.6)."""
    drain("Poison.NullBody")
    unreadable = [(message, failure) for message, failure in graveyard if message.raw_body is None]
    assert [failure.message for _, failure in unreadable] == ["the body is NULL"]
    assert not unreadable[0][0].headers_lost
    assert len(graveyard) == 2  # an empty body is acknowledged


def test_odd_values_are_handled_where_they_can_be(drain, graveyard):
    drain("Poison.OddValues")
    assert len(graveyard) == 11
    assert sum(message.headers_lost for message, _ in graveyard) == 1


def test_odd_expiries(drain, graveyard, spy):
    """T3: counted, not silently dropped."""
    drain("Poison.Expires")
    assert spy.counts["expired"] == 2
    assert len(graveyard) == 4


def test_a_recorded_backlog_is_handled(drain, handlers, graveyard, recorded_database):
    handled = []
    handlers.handle("Shop.Messages.Commands.ChargeCard")(lambda body, context: handled.append(body))
    sent = [row.seq for row in rows(recorded_database, "Billing")]
    drain("Billing")
    assert (len(handled), graveyard) == (len(sent), [])
    assert {"OrderId", "CardToken"} & set(handled[0])


def test_a_base_type_handles_recorded_events(drain, handlers, graveyard):
    handled = []
    handlers.handle("Shop.Messages.Events.IOrderEvent")(lambda body, context: handled.append(context.message.type))
    drain("Invoicing", schema="Legacy")
    assert set(handled) == {"Shop.Messages.Events.OrderPlaced"}
    assert len(handled) == 75
    assert {message.type for message, _ in graveyard} == {"Shop.Messages.Commands.CreateInvoice"}


@pytest.mark.parametrize("text", ['{"cut":"sho', "[]", '{"n":5}', '\ufeff{"a":"b"}'])
def test_unreadable_headers_go_to_an_error_queue_as_they_are(endpoint, text):
    """Wire sheet 2.4: same id, same text, same body, no expiry."""
    row_id = insert(endpoint.dsn, "Sales", text, b"\0body")
    with endpoint.connect() as connection:
        connection.run("update \"Sales\" set expires = '2020-01-01'")
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    (row,) = rows(endpoint.dsn, "error")
    assert (row.id, row.headers, row.body, row.expires) == (row_id, text, b"\0body", None)


@pytest.mark.parametrize(("text", "body"), [("null", b"{}"), (" null\n", b"{}"), ("{}", None), ('{"a":"b"}', None)])
def test_null_headers_and_body_are_replaced_in_the_error_queue(endpoint, text, body):
    """Error queues have readers too: the text null and a NULL body stop them as well."""
    row_id = insert(endpoint.dsn, "Sales", text, body)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    (row,) = rows(endpoint.dsn, "error")
    headers = h.parse(row.headers)
    assert headers[h.FAILED_Q] == '"public"."Sales"'
    assert headers[h.MESSAGE_ID] == str(row_id)
    assert row.body == (body or b"")


@pytest.mark.parametrize(
    ("headers", "body", "said"),
    [
        ({}, b"{}", "name no message type"),
        ({h.ENCLOSED_MESSAGE_TYPES: "PlaceOrder"}, b"{}", "no handler for PlaceOrder"),
        ({h.ENCLOSED_MESSAGE_TYPES: PLACE}, b"{", "the body is not application/json"),
        ({h.ENCLOSED_MESSAGE_TYPES: PLACE}, b"\xff\xfe", "the body is not application/json"),
        ({h.ENCLOSED_MESSAGE_TYPES: PLACE, h.CONTENT_TYPE: "text/xml"}, b"<a/>", "its headers say text/xml"),
    ],
)
def test_unreadable_message_is_not_retried(endpoint, handlers, headers, body, said, spy):
    handlers.handle(PLACE)(lambda order, context: None)
    insert(endpoint.dsn, "Sales", h.dump(headers), body)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    assert said in h.parse(rows(endpoint.dsn, "error")[0].headers)[h.EXCEPTION_MESSAGE]
    assert spy.counts["failed"] == 1


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({h.ENCLOSED_MESSAGE_TYPES: PLACE}, b""),
        ({h.ENCLOSED_MESSAGE_TYPES: "Unknown"}, b""),
        ({h.CONTROL_MESSAGE: "True"}, b""),
        ({h.CONTROL_MESSAGE: "True"}, b"anything"),
    ],
)
def test_nothing_to_handle_is_acknowledged(endpoint, handlers, headers, body, spy):
    """Wire sheet 2.5."""
    called = []
    handlers.handle(PLACE)(lambda order, context: called.append(order))
    insert(endpoint.dsn, "Sales", h.dump(headers), body)
    endpoint.start()
    until(lambda: spy.counts["received"] == 1)
    until(lambda: not rows(endpoint.dsn, "Sales"))
    finished(endpoint)
    assert (called, rows(endpoint.dsn, "error"), spy.counts["failed"]) == ([], [], 0)


@pytest.mark.parametrize("time_sent", ["2026-11-20T10:00:00Z", "", None, "0001-01-01 00:00:00:000000 Z"])
def test_a_malformed_time_fails_nothing(endpoint, handlers, time_sent, spy):
    """The original fails such a message after all retries; ours only cannot tell its age."""
    handlers.handle(PLACE)(lambda order, context: None)
    insert(endpoint.dsn, "Sales", h.dump({h.ENCLOSED_MESSAGE_TYPES: PLACE, h.TIME_SENT: time_sent}))
    endpoint.start()
    until(lambda: spy.counts["handled"] == 1)


def test_the_least_that_is_handled(endpoint, handlers, spy):
    """Wire sheet 7.2: a type alone. The row's id is the message's. A byte order mark is accepted."""
    seen = []
    handlers.handle(PLACE)(lambda order, context: seen.append((order, context.message_id)))
    row_id = insert(
        endpoint.dsn, "Sales", h.dump({h.ENCLOSED_MESSAGE_TYPES: f"{PLACE}, Wrong"}), b'\xef\xbb\xbf{"n":1}'
    )
    endpoint.start()
    until(lambda: seen == [({"n": 1}, str(row_id))])


def test_expired_messages_are_dropped_and_counted(endpoint, handlers, spy, connection):
    """T3."""
    seen = []
    handlers.handle(PLACE)(lambda order, context: seen.append(order))
    endpoint.send("Sales", 1, type=PLACE, ttbr=timedelta(seconds=30))
    endpoint.send("Sales", 2, type=PLACE, ttbr=timedelta(seconds=30))
    connection.run("update \"Sales\" set expires = now() at time zone 'utc' where seq = 1")
    endpoint.start()
    until(lambda: seen == [2])
    finished(endpoint)
    assert (spy.expired_types, rows(endpoint.dsn, "Sales")) == ([PLACE], [])
    assert spy.ttbrs == {PLACE: timedelta(seconds=30)}
    assert spy.counts["received"] == 1


def test_a_vanished_queue_is_waited_for(endpoint, handlers, connection, caplog):
    """Dropped at run time: one log line reports it; once it is back, the endpoint continues."""
    seen = []
    handlers.handle(PLACE)(lambda order, context: seen.append(order))
    endpoint.start()
    connection.run('drop table "Sales"')
    until(lambda: "The table is gone" in caplog.text)
    endpoint.create_queues()
    endpoint.send("Sales", 1, type=PLACE)
    until(lambda: seen == [1])


def test_a_table_that_is_no_queue_is_refused_at_the_start(make_endpoint, connection):
    endpoint = make_endpoint()
    connection.run('alter table "Sales" drop column expires')
    with pytest.raises(Exception, match="no column expires"):
        endpoint.start()

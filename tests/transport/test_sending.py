"""Sends of an endpoint: headers, batches, replies, events (T8; wire sheet 4, 5, 7)."""

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable, TableMissing
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import parse_time
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, rows
from tests.waiting import until

PLACE, PLACED = "Shop.PlaceOrder", "Shop.OrderPlaced"


@pytest.fixture
def billing(make_endpoint):
    """A queue without a receiver."""
    return make_endpoint("Billing")


def headers_of(row):
    return h.parse(row.headers)


def test_a_command_outside_of_handlers(endpoint, billing):
    message_id = endpoint.send(
        "Billing", {"n": "ü"}, type=PLACE, headers={"Tenant": "a"}, ttbr=timedelta(days=1, seconds=20)
    )
    (row,) = rows(endpoint.dsn, "Billing")
    headers = headers_of(row)
    assert row.body == '{"n":"ü"}'.encode()
    assert headers[h.MESSAGE_ID] == headers[h.CORRELATION_ID] == message_id
    assert UUID(headers[h.CONVERSATION_ID]) != UUID(message_id)
    assert headers[h.MESSAGE_INTENT] == "Send"
    assert headers[h.ENCLOSED_MESSAGE_TYPES] == PLACE
    assert headers[h.CONTENT_TYPE] == "application/json"
    assert headers[h.REPLY_TO_ADDRESS] == '"public"."Sales"'
    assert headers[h.ORIGINATING_ENDPOINT] == "Sales"
    assert headers[h.TIME_TO_BE_RECEIVED] == "1.00:00:20"
    assert headers["Tenant"] == "a"
    assert abs(parse_time(headers[h.TIME_SENT]) - datetime.now(UTC)) < timedelta(minutes=5)
    assert len(headers[h.ORIGINATING_HOST_ID]) == 32


def test_every_name_it_writes_is_one_that_endpoints_write(endpoint, billing, recording):
    endpoint.send("Billing", {}, type=PLACE, ttbr=timedelta(seconds=20))
    recorded = {name for row in rows(recording, "Sales")[:300] for name in headers_of(row)}
    (row,) = rows(endpoint.dsn, "Billing")
    assert set(headers_of(row)) == {name for name in recorded if name.startswith(("NServiceBus.", "$."))}


def test_bytes_are_sent_as_they_are(endpoint, billing):
    endpoint.send("Billing", b"\0raw", type=PLACE, headers={h.CONTENT_TYPE: "application/octet-stream"})
    (row,) = rows(endpoint.dsn, "Billing")
    assert row.body == b"\0raw"
    assert headers_of(row)[h.CONTENT_TYPE] == "application/octet-stream"


def test_destinations_are_addresses(endpoint, make_endpoint):
    make_endpoint("Very.Dotted")
    endpoint.send('"public"."Very.Dotted"', 1, type=PLACE)
    endpoint.send(Address("public", "Very.Dotted"), 2, type=PLACE)
    assert [row.body for row in rows(endpoint.dsn, "Very.Dotted")] == [b"1", b"2"]


def test_invalid_send_is_refused_with_its_reason(endpoint):
    with pytest.raises(TableMissing, match="Nowhere"):
        endpoint.send("Nowhere", 1, type=PLACE)
    with pytest.raises(AddressUnreadable):
        endpoint.send("", 1, type=PLACE)
    with pytest.raises(ValueError, match="type"):
        endpoint.send("Sales", 1, type="")
    for ttbr, said in {
        timedelta(): "over before",
        timedelta(0, 0, 499): "millisecond",
        timedelta.max: "leave out",
    }.items():
        with pytest.raises(ValueError, match=said):
            endpoint.send("Sales", 1, type=PLACE, ttbr=ttbr)
    with pytest.raises(ValueError, match="not a text"):
        endpoint.send("Sales", 1, type=PLACE, headers={"Count": 5})
    assert rows(endpoint.dsn, "Sales") == []


def test_a_handlers_messages_belong_together(endpoint, handlers, billing):
    @handlers.handle(PLACE)
    def place(order, context):
        context.send("Billing", {"n": 1}, type="Shop.Charge")
        context.reply({"n": 2}, type="Shop.Accepted")

    message_id = endpoint.send("Sales", {}, type=PLACE, headers={h.REPLY_TO_ADDRESS: "Billing"})
    endpoint.start()
    until(lambda: len(rows(endpoint.dsn, "Billing")) == 2)
    charge, accepted = map(headers_of, rows(endpoint.dsn, "Billing"))
    assert (charge[h.MESSAGE_INTENT], accepted[h.MESSAGE_INTENT]) == ("Send", "Reply")
    assert charge[h.CONVERSATION_ID] == accepted[h.CONVERSATION_ID]
    for headers in (charge, accepted):
        assert headers[h.RELATED_TO] == headers[h.CORRELATION_ID] == message_id
        assert headers[h.MESSAGE_ID] != message_id


def test_a_reply_finds_the_saga_that_asked(endpoint, handlers, billing, recording):
    """As recorded: the saga headers of a request, and of its replies."""
    asked = next(each for each in map(headers_of, rows(recording, "error")) if h.ORIGINATING_SAGA_ID in each)
    handlers.handle(PLACE)(lambda order, context: context.reply({}, type="Shop.Accepted"))
    saga = {name: asked[name] for name in (h.ORIGINATING_SAGA_ID, h.ORIGINATING_SAGA_TYPE)}
    endpoint.send("Sales", {}, type=PLACE, headers={**saga, h.REPLY_TO_ADDRESS: '"public"."Billing"'})
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "Billing"))
    (reply,) = map(headers_of, rows(endpoint.dsn, "Billing"))
    assert (reply[h.SAGA_ID], reply[h.SAGA_TYPE]) == tuple(saga.values())
    assert h.ORIGINATING_SAGA_ID not in reply


def test_a_reply_without_an_address_exhausts_the_message(endpoint, handlers, spy):
    @handlers.handle(PLACE)
    def place(order, context):
        context.reply({}, type="Shop.Accepted")

    endpoint.send("Sales", {}, type=PLACE, headers={h.REPLY_TO_ADDRESS: None})
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    finished(endpoint)
    assert spy.counts["failed"] == 1


def test_order_and_deduplication_within_one_dispatch(endpoint, handlers, billing):
    """Wire sheet 5: of one message id and destination, the last is sent."""

    @handlers.handle(PLACE)
    def place(order, context):
        for number in range(5):
            context.send("Billing", number, type="Shop.Charge")
        for number in (6, 7):
            context.send('"public"."Billing"', number, type="Shop.Charge", headers={h.MESSAGE_ID: "same"})

    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "Billing"))
    assert [json.loads(row.body) for row in rows(endpoint.dsn, "Billing")] == [0, 1, 2, 3, 4, 7]


def test_events_reach_each_subscribed_queue_once(endpoint, make_endpoint, handlers, database):
    """Wire sheet 4: by type, by base type, by System.Object; two spellings are one queue."""
    subscribers = [make_endpoint(name) for name in ("Own", "Base", "All", "Other")]
    for subscriber, topic in zip(subscribers, [PLACED, "Shop.IEvent", "System.Object", "Shop.Elsewhere"], strict=True):
        subscriber.subscribe(topic)
    subscribers[0].subscribe("Shop.IEvent")
    with endpoint.connect() as connection:
        connection.run("insert into \"SubscriptionRouting\" values ('Base', 'Spelled', %s)", [PLACED])
    message_id = endpoint.publish({"n": 1}, type=[f"{PLACED}, Shop, Version=1", "Shop.IEvent, Shop"])
    received = {name: rows(database, name) for name in ("Own", "Base", "All", "Other")}
    assert [len(received[name]) for name in ("Own", "Base", "All", "Other")] == [1, 1, 1, 0]
    for name in ("Own", "Base", "All"):
        headers = headers_of(received[name][0])
        assert (headers[h.MESSAGE_ID], headers[h.MESSAGE_INTENT]) == (message_id, "Publish")
        assert headers[h.ENCLOSED_MESSAGE_TYPES] == f"{PLACED}, Shop, Version=1;Shop.IEvent, Shop"


def test_publish_without_subscribers_sends_nothing(endpoint):
    assert endpoint.publish({}, type=PLACED) == ""


def test_a_subscription_moves_and_ends(make_endpoint, database):
    subscriber = make_endpoint("Own")
    for _ in range(2):
        subscriber.subscribe(PLACED)
    with subscriber.connect() as connection:
        (row,) = connection.all('select * from "SubscriptionRouting"')
        assert tuple(row) == ('"public"."Own"', "Own", PLACED)
        subscriber.unsubscribe(PLACED)
        assert connection.all('select * from "SubscriptionRouting"') == []
    assert subscriber.publish({}, type=PLACED) == ""


def test_a_handler_publishes(endpoint, handlers, make_endpoint, database):
    make_endpoint("Own").subscribe(PLACED)

    @handlers.handle(PLACE)
    def place(order, context):
        context.publish({}, type=PLACED)

    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(database, "Own"))
    assert rows(database, "Sales") == []


def test_a_schema_of_its_own(make_endpoint, connection, database, handlers):
    connection.run('create schema "Legacy"')
    invoicing = make_endpoint("Invoicing", schema="Legacy", settings=QUICK)
    invoicing.send("Invoicing", {}, type=PLACE)
    (row,) = rows(database, "Invoicing", schema="Legacy")
    assert headers_of(row)[h.REPLY_TO_ADDRESS] == '"Legacy"."Invoicing"'

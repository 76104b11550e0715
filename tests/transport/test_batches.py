"""Many messages at once: one round trip, large ones by COPY, all or none, same expiry as by an insert (T8)."""

from datetime import UTC, datetime, timedelta

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import TableMissing
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.sending import bulk
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.message import OutgoingMessage
from tests.transport.recording_observer import rows

PLACE = "Shop.PlaceOrder"
SALES = Address("public", "Sales")


@pytest.mark.parametrize("many", [0, 1, bulk.FEW, bulk.FEW + 1, bulk.MANY + 1])
def test_messages_of_a_batch_keep_their_order_and_have_own_ids(endpoint, many):
    ids = endpoint.send_many("Sales", range(many), type=PLACE)
    stored = rows(endpoint.dsn, "Sales")
    assert [row.body for row in stored] == [str(number).encode() for number in range(many)]
    assert [h.parse(row.headers)[h.MESSAGE_ID] for row in stored] == ids
    assert len({row.id for row in stored}) == many


@pytest.mark.parametrize("many", [100, bulk.MANY + 1])
def test_batch_is_sent_whole_or_not_at_all(endpoint, connection, many):
    connection.run('alter table "Sales" add check (body <> \'"bad"\')')
    with pytest.raises(Exception, match="check"):
        endpoint.send_many("Sales", [*range(many), "bad"], type=PLACE)
    with pytest.raises(TableMissing):
        endpoint.send_many("Nowhere", range(many), type=PLACE)
    assert rows(endpoint.dsn, "Sales") == []
    endpoint.send("Sales", 1, type=PLACE)
    assert len(rows(endpoint.dsn, "Sales")) == 1


def test_unserializable_message_undoes_the_whole_batch(endpoint):
    """Earlier messages have been sent to the server by then."""
    with pytest.raises(TypeError, match="keys must be"):
        endpoint.send_many("Sales", [*range(90), {b"not text": 1}], type=PLACE)
    assert rows(endpoint.dsn, "Sales") == []
    endpoint.send_many("Sales", range(100), type=PLACE)
    assert len(rows(endpoint.dsn, "Sales")) == 100


def test_messages_of_a_batch_with_one_id_are_sent_once(endpoint):
    """Within one dispatch, the last message with an id is sent (wire sheet 5)."""
    endpoint.send_many("Sales", range(100), type=PLACE, headers={h.MESSAGE_ID: "same"})
    assert [row.body for row in rows(endpoint.dsn, "Sales")] == [b"99"]


def test_to_several_queues_at_once_is_all_or_none_as_well(endpoint, make_endpoint, connection):
    """A publish is one round trip for any number of subscribers."""
    for name in ("Own", "Gone"):
        make_endpoint(name).subscribe("Shop.OrderPlaced")
    connection.run('drop table "Gone"')
    with pytest.raises(TableMissing):
        endpoint.publish({}, type="Shop.OrderPlaced")
    assert rows(endpoint.dsn, "Own") == []


def test_by_copy_a_message_expires_when_it_would_by_an_insert(connection):
    """Both ways share a transaction's start and must agree to the microsecond, in any session."""
    queue = TableQueue(postgresql(), SALES)
    queue.create(connection)
    connection.run("set datestyle = 'german'")
    connection.run("set timezone = 'America/New_York'")
    spans = [timedelta(milliseconds=1), timedelta(seconds=90), timedelta(days=30), timedelta(days=4_000_000), None]

    def messages():
        return [OutgoingMessage(SALES, {"span": str(span)}, b"", span) for span in spans]

    with connection.transaction():
        queue.send(connection, messages())
        assert queue.load(connection, messages())
        expires = connection.all('select headers, expires::text from "Sales" order by seq')
    assert [tuple(row) for row in expires[:5]] == [tuple(row) for row in expires[5:]]
    assert len({row.expires for row in expires}) == 5


def test_large_bodies_go_by_copy_too():
    message = OutgoingMessage(SALES, {}, bytes(bulk.BIG))
    assert not bulk.is_large([message])  # alone it is an ordinary parameter
    assert bulk.is_large([message, message])
    assert not bulk.is_large([OutgoingMessage(SALES, {}, b"")] * bulk.MANY)


@pytest.mark.parametrize("many", [3, bulk.MANY + 1])
def test_many_delayed_ones_wait_together(endpoint, connection, many):
    endpoint.send_many("Sales", range(many), type=PLACE, delay=datetime(2100, 1, 1, tzinfo=UTC))
    assert connection.value('select count(*) from "Sales.Delayed"') == many
    assert rows(endpoint.dsn, "Sales") == []
    with pytest.raises(ValueError, match="time to be received"):
        endpoint.send_many("Sales", [1], type=PLACE, delay=timedelta(1), ttbr=timedelta(1))


def test_a_large_dispatch_to_many_places_leaves_nothing_behind(endpoint, make_endpoint, connection):
    """One handler's sends: some by COPY, some by insert, some delayed."""
    make_endpoint("Billing")

    def out(queue, number, **more):
        return OutgoingMessage(Address("public", queue), {h.MESSAGE_ID: str(number)}, str(number).encode(), **more)

    messages = [out("Sales", number) for number in range(bulk.MANY + 1)]
    messages += [out("Billing", number) for number in range(5)]
    messages += [out("Sales", number, delay=timedelta(hours=1)) for number in range(bulk.MANY + 1, bulk.MANY + 8)]
    with connection.transaction():
        endpoint._sender.dispatch(connection, messages)
    found = [len(rows(endpoint.dsn, "Sales")), len(rows(endpoint.dsn, "Billing"))]
    assert [*found, connection.value('select count(*) from "Sales.Delayed"')] == [bulk.MANY + 1, 5, 7]

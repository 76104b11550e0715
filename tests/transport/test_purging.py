"""Purging: all messages or the expired ones, in chunks, counted, skipping those in flight (wire sheet 12.6)."""

from datetime import timedelta

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql, queue_store
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire.message import OutgoingMessage
from tests.transport.recording_observer import rows


@pytest.fixture
def queue(connection, monkeypatch):
    """Twelve messages, every third expired."""
    monkeypatch.setattr(queue_store, "PURGE_CHUNK", 3)
    queue = TableQueue(postgresql(), Address("public", "Sales"))
    queue.create(connection)
    queue.send(
        connection, [OutgoingMessage(queue.address, {}, b"", timedelta(1) if n % 3 else None) for n in range(12)]
    )
    connection.run("update \"Sales\" set expires = '2020-01-01' where expires is null")
    return queue


def left(connection):
    return [row.seq for row in connection.all('select seq from "Sales" order by seq')]


def test_purge_leaves_messages_in_flight(queue, connection, database, connect):
    other = connect(database)
    with other.transaction():
        assert queue.receive(other).seq == 1
        assert queue.purge(connection) == 11
        assert left(connection) == [1]
    assert left(connection) == []
    assert queue.purge(connection) == 0


def test_only_what_has_expired(queue, connection, database, connect):
    other = connect(database)
    with other.transaction():
        assert queue.receive(other).expired
        assert queue.purge(connection, expired_only=True) == 3
    assert left(connection) == [2, 3, 5, 6, 8, 9, 11, 12]
    assert queue.purge(connection, expired_only=True) == 0


def test_each_chunk_is_a_commit_of_its_own(queue, connection, database, connect):
    """A failure halfway leaves the first half purged."""
    connection.run("create function refuse() returns trigger language plpgsql as 'begin raise exception ''no''; end'")
    connection.run(
        'create trigger t before delete on "Sales" for each row when (old.seq = 8) execute function refuse()'
    )
    with pytest.raises(Exception, match="no"):
        queue.purge(connection)
    assert left(connection) == [7, 8, 9, 10, 11, 12]


def test_an_endpoint_purges_its_own_queue(endpoint):
    endpoint.send_many("Sales", range(5), type="Shop.PlaceOrder")
    assert (endpoint.purge(expired_only=True), endpoint.purge()) == (0, 5)
    assert rows(endpoint.dsn, "Sales") == []

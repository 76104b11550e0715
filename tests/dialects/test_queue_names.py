"""Queues of any name: created, sent to, peeked at, received from and dropped without confusion."""

import pytest

from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire.message import OutgoingMessage


@pytest.mark.parametrize(
    "name",
    [
        "Sales",
        "sales",
        "a.b.c",
        'Quo"ted',
        "<script>alert(1)</script>",
        "Zażółć",
        "x'; drop table y; --",
        "%s {table}",
        "日本 🛒",
    ],
)
def test_a_queue_of_any_name(dialect: Dialect, connection: Connection, name: str) -> None:
    queue = TableQueue(dialect, Address("public", name))
    queue.create(connection)
    assert list(queue.faults(connection)) == []
    queue.send(connection, [OutgoingMessage(queue.address, {"n": str(number)}, b"") for number in range(3)])
    assert queue.peek(connection) == 3
    received = queue.receive(connection)
    assert received
    assert received.headers == {"n": "0"}
    assert queue.purge(connection) == 2
    assert [row.tablename for row in connection.all("select tablename from pg_tables where schemaname = 'public'")] == [
        name
    ]

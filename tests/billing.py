"""A second server with a queue of a database that is written to as ``billing``, and dead messages that failed there."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport.wire import headers as h
from tests.own_server import own_server

ORDERS, THERE = Address("billing:public", "Orders"), Address("public", "Orders")
NAME = '"billing:public"."Orders"'
_FAILED_THERE = """
update messages.message_archive set queue = %(name)s, target_schema = 'billing:public', target_table = 'Orders'
where id = any (array(
    select id from messages.message_archive
    where state = 'dead' and kind = 'transport' and retry_blocked_reason is null and body is not null
    order by seq limit %(limit)s))
"""


@contextmanager
def billing_server() -> Iterator[PostgreSQL]:
    """A server of its own, which a crash costs nothing that it has committed."""
    with own_server({"autovacuum": "off", "max_connections": 60}) as server:
        with postgresql().connect(server.dsn()) as there:
            there.run("create database billing")
        with postgresql().connect(server.dsn("billing")) as there:
            postgresql().queue_store(THERE).create(there)
        yield server


def emptied(server: PostgreSQL) -> None:
    with postgresql().connect(server.dsn("billing")) as there:
        there.run('truncate public."Orders"')


def looked_at(dsn: str, *, writable: bool = True) -> dict[str, Any]:
    return {"billing": {"URL": dsn, "SCHEMAS": ["public"], "WRITABLE": writable}}


def failed_there(number: int) -> list[int]:
    """So many of the recorded dead messages as if they had failed there; their archive ids."""
    with queue_database().writing() as here:
        here.run(_FAILED_THERE, {"name": NAME, "limit": number})
        rows = here.all("select id from messages.message_archive where queue = %(name)s order by id", {"name": NAME})
    return [row.id for row in rows]


def arrived(server: PostgreSQL) -> list[str]:
    """Message ids in the queue there, in order."""
    with postgresql().connect(server.dsn("billing")) as there:
        rows = there.all('select headers from public."Orders" order by seq')
    return [str(h.parse(row.headers)[h.MESSAGE_ID]) for row in rows]


def row_ids(server: PostgreSQL) -> set[str]:
    with postgresql().connect(server.dsn("billing")) as there:
        return {row.id for row in there.all('select id::text as id from public."Orders"')}


def restarted_after_a_crash(server: PostgreSQL) -> None:
    """All of its processes end at once, without a word; what it had on disk is what it has."""
    child = server._child
    assert child
    child.send_signal(signal.SIGQUIT)  # immediate: no shutdown checkpoint, recovery at the next start
    child.wait(30)
    server.start()


def open_crossings(connection: Connection) -> int:
    return int(connection.value("select count(*) from messages.crossing"))

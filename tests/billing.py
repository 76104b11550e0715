"""A second server with a queue in a database that is writable as ``billing``, and dead messages that failed there."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pytest_django import Settings

from pgqueue_admin.dialects import Address, Connection, dialect_for
from pgqueue_admin.dialects.delayed_store import DelayedRow, DelayedStore
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.models import queue_database as queue_databases
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport.wire import headers as h
from tests import mssql
from tests.own_server import own_server

ORDERS, THERE = Address("billing:public", "Orders"), Address("public", "Orders")
NAME = '"billing:public"."Orders"'
_FAILED_THERE = """
update messages.message_archive set queue = %(name)s, target_schema = %(schema)s, target_table = 'Orders'
where id = any (array(
    select id from messages.message_archive
    where state = 'dead' and kind = 'transport' and retry_blocked_reason is null and body is not null
    order by seq limit %(limit)s))
"""


@contextmanager
def billing_server() -> Iterator[PostgreSQL]:
    """A server of its own. A crash of it loses nothing committed."""
    with own_server({"autovacuum": "off", "max_connections": 60}) as server:
        with postgresql().connect(server.dsn()) as there:
            there.run("create database billing")
        with postgresql().connect(server.dsn("billing")) as there:
            postgresql().queue_store(THERE).create(there)
        yield server


def looked_at(dsn: str, *, writable: bool = True, schema: str = "public") -> dict[str, Any]:
    return {"billing": {"URL": dsn, "SCHEMAS": [schema], "WRITABLE": writable}}


def failed_there(number: int, name: str = NAME, schema: str = ORDERS.schema) -> list[int]:
    """Mark that many recorded dead messages as failed in the other database; return their archive ids."""
    with queue_database().write_session() as here:
        here.run(_FAILED_THERE, {"name": name, "schema": schema, "limit": number})
        rows = here.all("select id from messages.message_archive where queue = %(name)s order by id", {"name": name})
    return [row.id for row in rows]


class Billing:
    """The database ``billing`` on PostgreSQL or SQL Server, with the same methods. ``server``: set if we started it."""

    def __init__(self, dsn: str, server: PostgreSQL | None = None):
        self.dsn = dsn
        self.dialect = dialect_for(dsn)
        self.schema = self.dialect.default_schema
        self.orders = self.dialect.aliased("billing").address(self.schema, "Orders")
        self.name = postgresql().canonical(self.orders)  # as the archive writes it
        self._server = server
        self._is_sql_server = self.dialect.name == "sqlserver"

    @property
    def server(self) -> PostgreSQL:
        assert self._server, "nobody crashes a server that somebody named"
        return self._server

    @property
    def away(self) -> dict[str, Any]:
        """A server of this kind that does not answer."""
        scheme = self.dsn.partition("://")[0]
        return looked_at(f"{scheme}://nobody@127.0.0.1:1/none", schema=self.schema)

    def looked_at(self, *, writable: bool = True) -> dict[str, Any]:
        return looked_at(self.dsn, writable=writable, schema=self.schema)

    def table(self, name: str) -> str:
        return f'{self.schema}."{name}"'

    def run(self, text: str) -> None:
        with self.dialect.connect(self.dsn) as there:
            there.run(text)

    def make(self, name: str) -> Address:
        """Create the queue, empty."""
        address = self.dialect.address(self.schema, name)
        with self.dialect.connect(self.dsn) as there:
            self.dialect.queue_store(address).create(there)
            there.run(f"truncate table {self.table(name)}")
        return address

    def send(self, name: str, *messages: tuple[str, bytes]) -> None:
        queue = self.dialect.queue_store(self.dialect.address(self.schema, name))
        with self.dialect.connect(self.dsn) as there:
            there.run_all(queue.insertions([(headers, body, None) for headers, body in messages]))

    def make_delayed(self, name: str) -> None:
        with self.dialect.connect(self.dsn) as there:
            self._delayed(name).create(there)

    def delay(self, name: str, number: int) -> None:
        """Delay that many messages by five minutes."""
        with self.dialect.connect(self.dsn) as there:
            there.run_all(self._delayed(name).insertions([DelayedRow("{}", b"", None, 300_000)] * number))

    def _delayed(self, name: str) -> DelayedStore:
        table, queue = (self.dialect.address(self.schema, each) for each in (f"{name}.Delayed", name))
        return self.dialect.delayed_store(table, queue)

    def failed_in(self, headers: str) -> str:
        """Write the name of the failed queue as endpoints of that database write it."""
        if not self._is_sql_server:
            return headers
        try:
            known = h.parse(headers)
            failed = postgresql().parse_address(known.get(h.FAILED_Q) or "")
        except (h.HeadersUnreadable, AddressUnreadable):
            return headers
        name = self.dialect.canonical(self.dialect.address(self.schema, failed.table))
        return h.dump({**known, h.FAILED_Q: name})

    def rows(self, name: str = "Orders") -> list[Any]:
        """The unlocked messages in order; ids as text."""
        order = "RowVersion" if self._is_sql_server else "seq"
        columns = "Id as id, Headers as headers, Body as body, Expires as expires"
        with self.dialect.connect(self.dsn) as there:
            found = there.all(f"select {columns} from {self.table(name)} order by {order}")
        return [row._replace(id=str(row.id).lower()) for row in found]

    def arrived(self) -> list[str]:
        """Message ids in the queue, in order."""
        return [str(h.parse(row.headers)[h.MESSAGE_ID]) for row in self.rows()]

    def failed(self, number: int) -> list[int]:
        return failed_there(number, self.name, self.orders.schema)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Make the queue refuse each message."""
        check = "with nocheck add constraint never check (1 = 0)"
        self._alter(check if self._is_sql_server else "add constraint never check (false) not valid")
        try:
            yield
        finally:
            self._alter("drop constraint never")

    @contextmanager
    def without_queue(self) -> Iterator[None]:
        self.rename("Orders", "Gone")
        try:
            yield
        finally:
            self.rename("Gone", "Orders")

    def _alter(self, what: str) -> None:
        self.run(f"alter table {self.table('Orders')} {what}")

    def rename(self, old: str, new: str) -> None:
        if self._is_sql_server:
            self.run(f"exec sys.sp_rename N'{self.schema}.{old}', N'{new}'")
        else:
            self.run(f'alter table {self.table(old)} rename to "{new}"')


KINDS = ["postgresql", *mssql.ONE]  # parameters of a fixture that calls ``billing_of``
on_postgresql = pytest.mark.parametrize("billing", ["postgresql"], indirect=True)


@contextmanager
def billing_of(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Billing]:
    """A database that the console looks at: on the module's ``server_there``, or on the SQL Server under test."""
    with _made(request) as there:
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": there.looked_at()}
        yield there
        queue_databases.close()


@contextmanager
def _made(request: pytest.FixtureRequest) -> Iterator[Billing]:
    """A database with an empty queue Orders: on the module's ``server_there``, or on the SQL Server under test."""
    if request.param in mssql.ONE:
        with request.getfixturevalue("mssql").database() as dsn:
            made = Billing(dsn)
            made.run(made.dialect.crossings.creation)  # type: ignore[union-attr]
            made.make("Orders")
            yield made
        return
    server = request.getfixturevalue("server_there")
    made = Billing(server.dsn("billing"), server)
    made.make("Orders")
    yield made


def restarted_after_a_crash(server: PostgreSQL) -> None:
    """Kill all processes of the server at once and restart it: it has only what was on disk."""
    child = server._child
    assert child
    child.send_signal(signal.SIGQUIT)  # immediate: no shutdown checkpoint, recovery at the next start
    child.wait(30)
    server.start()


def open_crossings(connection: Connection) -> int:
    return int(connection.value("select count(*) from messages.crossing"))

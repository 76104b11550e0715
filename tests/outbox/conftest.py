"""Endpoints with an outbox, handlers that write business rows, and a receiver of what they send."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers
from tests.mariadb import MariaDB
from tests.transport.recording_observer import Spy

SETTINGS = EndpointSettings(
    peek_delay=0.1,
    notify=False,
    concurrency=4,
    immediate_retries=2,
    delayed_retries=0,
    on_exhausted="error_queue",
    transaction_mode="receive_only",
)
CHARGE, CHARGED = "Shop.ChargeCard", "Shop.CardCharged"

MakeEndpoint = Callable[..., Endpoint]
Shops = dict[str, str]  # DSNs of databases that handlers enlist, by name


@pytest.fixture
def spy() -> Spy:
    return Spy()


@pytest.fixture
def make(database: str, connection: Connection, spy: Spy) -> Iterator[MakeEndpoint]:
    """``make(outbox=Outbox(…))``: Billing with its tables and business table, not started. Sales gets its sends."""
    made: list[Endpoint] = []
    connection.run("create table charges (number integer, copies integer generated always as identity)")

    def make(name: str = "Billing", *, outbox: Outbox | None = None, **settings: Any) -> Endpoint:
        made.append(
            Endpoint(
                name,
                database,
                settings=replace(SETTINGS, **{"outbox": outbox or Outbox(), **settings}),
                handlers=Handlers(),
                observer=cast(Any, spy),
            )
        )
        made[-1].create_queues()
        return made[-1]

    Endpoint("Sales", database, settings=SETTINGS).create_queues()
    yield make
    for endpoint in made:
        endpoint.stop(drain_seconds=0)


@pytest.fixture
def shops(databases: Any, connect: Callable[[str], Connection]) -> Iterator[Shops]:
    """Two databases with a business table each; no prepared transaction is left at the end."""
    with ExitStack() as stack:
        made = {name: stack.enter_context(databases.clone("empty")) for name in ("ledger", "stock")}
        for dsn in made.values():
            connect(dsn).run("create table charges (number integer primary key)")
        yield made
        for dsn in made.values():
            end_all(connect(dsn))


def end_all(session: Connection) -> None:
    """Roll back all prepared transactions, so that the database can be dropped even after a failed test."""
    for (gid,) in session.all("select gid from pg_prepared_xacts where database = current_database()"):
        session.run(f"rollback prepared '{gid}'")


@pytest.fixture
def mariadb_stock(mariadb: MariaDB) -> Iterator[str]:
    """The DSN of a database on MariaDB, like those of ``shops``."""
    with charges_of(mariadb, "number integer primary key") as dsn:
        yield dsn
        for line in mariadb.run("xa recover format='SQL'").splitlines():
            mariadb.run(f"xa rollback {line.rpartition(chr(9))[2]}")


@pytest.fixture
def mariadb_shop(mariadb: MariaDB) -> Iterator[str]:
    """The DSN of business data on MariaDB."""
    with charges_of(mariadb, "number integer") as dsn:
        yield dsn


@contextmanager
def charges_of(mariadb: MariaDB, column: str) -> Iterator[str]:
    with mariadb.database() as name:
        mariadb.run(f"create table charges ({column})", name)
        yield mariadb.dsn(name)


def charging(endpoint: Endpoint, table: str = "public.charges", enlisted: Iterable[str] = ()) -> None:
    """Handle a message with one business row, one row in each enlisted database, and one send."""

    @endpoint.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        context.connection.run(f"insert into {table} (number) values (%s)", [number])
        for name in enlisted:
            context.enlist(name).run("insert into charges (number) values (%s)", [number])
        context.send("Sales", number, type=CHARGED)

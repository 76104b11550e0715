"""Endpoints with an outbox, handlers that write business rows, and who receives what they send."""

from collections.abc import Callable, Iterator
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


@pytest.fixture
def spy() -> Spy:
    return Spy()


@pytest.fixture
def make(database: str, connection: Connection, spy: Spy) -> Iterator[MakeEndpoint]:
    """``make(outbox=Outbox(…))``: Billing, its tables and its business table; not started. Sales gets what it sends."""
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
def mariadb_shop(mariadb: MariaDB) -> Iterator[str]:
    """A DSN: business data on MariaDB."""
    with mariadb.database() as name:
        mariadb.run("create table charges (number integer)", name)
        yield mariadb.dsn(name)


def charging(endpoint: Endpoint, table: str = "public.charges") -> None:
    """One business row and one send for each message."""

    @endpoint.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        context.connection.run(f"insert into {table} (number) values (%s)", [number])
        context.send("Sales", number, type=CHARGED)

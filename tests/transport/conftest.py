"""Endpoints on an empty database, stopped at the end of each test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers
from pgqueue_admin.transport.receiving.message_pump import QueuePeeker
from pgqueue_admin.transport.tables.table_queue import TableQueue
from tests.databases import Databases
from tests.transport.recording_observer import Spy

QUICK = EndpointSettings(peek_delay=0.1, notify=False, concurrency=2, delayed_retries=0, on_exhausted="error_queue")

MakeEndpoint = Callable[..., Endpoint]


@pytest.fixture
def handlers() -> Handlers:
    return Handlers()


@pytest.fixture
def spy() -> Spy:
    return Spy()


@pytest.fixture
def make_endpoint(database: str, handlers: Handlers, spy: Spy) -> Iterator[MakeEndpoint]:
    """``make_endpoint("Sales", …)``: creates its queues; not started."""
    made: list[Endpoint] = []

    def make(name: str = "Sales", dsn: str = database, **options: Any) -> Endpoint:
        made.append(Endpoint(name, dsn, **{"settings": QUICK, "handlers": handlers, "observer": spy, **options}))
        made[-1].create_queues()
        return made[-1]

    yield make
    for endpoint in made:
        endpoint.stop(drain_seconds=0)


@pytest.fixture(scope="session")
def recording(databases: Databases) -> Iterator[str]:
    """The DSN of the recorded database, shared by all tests, which may only read it."""
    with databases.clone("recorded") as dsn:
        yield f"{dsn}?options=-c%20default_transaction_read_only%3Don"


@pytest.fixture
def one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receives that a peek allows all run before the next peek, however slow the machine is."""
    monkeypatch.setattr(QueuePeeker, "good_for", 600.0)


@pytest.fixture
def endpoint(make_endpoint: MakeEndpoint) -> Endpoint:
    return make_endpoint()


@pytest.fixture
def queue(connection: Connection) -> TableQueue:
    queue = TableQueue(postgresql(), Address("public", "Sales"))
    queue.create(connection)
    return queue

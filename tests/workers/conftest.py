"""Fixtures of the tests of processes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from tests.databases import Databases
from tests.monitor.test_sampler import Clock
from tests.workers.host import House


@pytest.fixture
def queues(databases: Databases) -> Iterator[str]:
    """The DSN of a queue database apart from the console's."""
    with databases.clone("engine") as dsn:
        yield dsn


@pytest.fixture
def sales(queues: str, connect: Callable[[str], Connection]) -> Iterator[Endpoint]:
    """A sender, with the queues of Sales and Broken created."""
    columns = "pid int, message_id text, row_id uuid, seq int, modules text[], at timestamptz default now()"
    connect(queues).run(f"create table handled ({columns})")
    for name in ("Broken", "Sales"):
        endpoint = Endpoint(name, queues)
        endpoint.create_queues()
    yield endpoint
    endpoint.stop()


@pytest.fixture
def look(queues: str, connect: Callable[[str], Connection]) -> Connection:
    """A session that reads the queue database."""
    return connect(queues)


@pytest.fixture
def house(console_database: str, queues: str, sales: Endpoint, tmp_path: Path) -> Iterator[House]:
    house = House(console_database, queues, tmp_path / "var")
    yield house
    house.close()


@pytest.fixture
def deadly(console_database: str, queues: str, sales: Endpoint, tmp_path: Path) -> Iterator[House]:
    """Like ``house``, with handlers that crash their process."""
    house = House(console_database, queues, tmp_path / "var", apps="tests.workers.deadly")
    yield house
    house.close()


@pytest.fixture
def tables(console_database: str, connect: Callable[[str], Connection]) -> Connection:
    """A session of the console's own database, where a sampler's queues are."""
    return connect(console_database)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sampling(console_database: str, clock: Clock) -> Iterator[SamplerProcess]:
    sampling = SamplerProcess(monotonic=clock)
    yield sampling
    sampling.close()

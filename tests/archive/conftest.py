"""Archives for tests, empty or filled from the recorded error queue."""

from collections.abc import Callable, Iterator

import pytest

from pgqueue_admin.dialects import Address, Connection
from tests.databases import Databases

ERROR = Address("public", "error")


@pytest.fixture
def engine(engine_database: str, connect: Callable[..., Connection]) -> Connection:
    """A session on a database with the engine's tables."""
    return connect(engine_database)


@pytest.fixture
def recorded(recorded_database: str, connect: Callable[..., Connection]) -> Connection:
    """A session on the recorded shop, whose error queue is not ingested yet."""
    return connect(recorded_database)


@pytest.fixture
def archived_database(databases: Databases) -> Iterator[str]:
    """A DSN: the recorded shop with its whole error queue in the archive."""
    with databases.clone("archived_console") as dsn:
        yield dsn


@pytest.fixture
def ingested(archived_database: str, connect: Callable[..., Connection]) -> Connection:
    """A session on ``archived_database``."""
    return connect(archived_database)

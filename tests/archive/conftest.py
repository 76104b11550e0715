"""An archive to work with, empty or holding what the recorded error queue held."""

from collections.abc import Callable

import pytest

from pgqueue_admin.archive.ingester import ingest
from pgqueue_admin.dialects import Address, Connection

ERROR = Address("public", "error")


@pytest.fixture
def engine(engine_database: str, connect: Callable[..., Connection]) -> Connection:
    """A session on a database with the engine's tables."""
    return connect(engine_database)


@pytest.fixture
def recorded(recorded_database: str, connect: Callable[..., Connection]) -> Connection:
    """A session on the recorded shop, its error queue not yet ingested."""
    return connect(recorded_database)


@pytest.fixture
def ingested(recorded: Connection) -> Connection:
    """The recorded shop with all of its error queue in the archive."""
    while ingest(recorded, ERROR).full:
        pass
    return recorded

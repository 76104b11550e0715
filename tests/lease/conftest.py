"""The lease queue on a real server, beside the original's statements."""

from collections.abc import Callable, Iterator

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import LeaseQueue


@pytest.fixture
def engine(engine_database: str, connect: Callable[..., Connection]) -> Connection:
    """A session on a database with the engine's tables."""
    return connect(engine_database)


@pytest.fixture
def queue(engine_database: str) -> Iterator[LeaseQueue]:
    queue = LeaseQueue(engine_database, name="thumbs")
    yield queue
    queue.close()

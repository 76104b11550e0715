"""Fixtures of the tests of the lease queue's figures."""

from collections.abc import Callable, Iterator

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import LeaseQueue

Connect = Callable[..., Connection]


@pytest.fixture
def reading(engine_database: str, connect: Connect) -> Connection:
    return connect(engine_database, read_only=True)


@pytest.fixture
def queue(engine_database: str) -> Iterator[LeaseQueue]:
    queue = LeaseQueue(engine_database, name="thumbs")
    yield queue
    queue.close()

"""All dialects, for tests that each of them must pass."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pgqueue_admin.dialects import Connection, Dialect
from pgqueue_admin.dialects.postgresql import postgresql
from tests.dialects.sales import QUEUE, SQL, Trace, Traced


@pytest.fixture(params=[postgresql], ids=lambda make: make.__name__)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return request.param()


@pytest.fixture
def queue(connection: Connection) -> Connection:
    """A session of a database with the queue."""
    connection.run(SQL.create(table=QUEUE))
    return connection


@pytest.fixture
def traced(queue: Connection, tmp_path: Path) -> Traced:
    """``traced(work)``: libpq's trace of the messages sent and received."""

    def traced(work: Callable[[], object]) -> Trace:
        with (tmp_path / "trace").open("w+") as trace:
            queue.raw.pgconn.trace(trace.fileno())
            work()
            queue.raw.pgconn.untrace()
            trace.seek(0)
            return Trace(trace.read())

    return traced

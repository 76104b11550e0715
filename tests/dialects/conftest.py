"""Every dialect there is, for tests that all of them pass."""

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
    """A session of a database that has it."""
    connection.run(SQL.create(table=QUEUE))
    return connection


@pytest.fixture
def traced(queue: Connection, tmp_path: Path) -> Traced:
    """What goes by while something is done."""

    def traced(work: Callable[[], object]) -> Trace:
        with (tmp_path / "trace").open("w+") as trace:
            queue.raw.pgconn.trace(trace.fileno())
            work()
            queue.raw.pgconn.untrace()
            trace.seek(0)
            return Trace(trace.read())

    return traced

"""Time limits of one reading, whatever limit the session has."""

from collections.abc import Iterator
from contextlib import contextmanager

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql


@contextmanager
def within(connection: Connection, seconds: float) -> Iterator[None]:
    """A transaction whose statements, waits for locks included, raise TimedOut after ``seconds`` each."""
    with connection.transaction():
        connection.one(postgresql().monitor.within(), {"ms": max(1, round(seconds * 1000))})
        yield

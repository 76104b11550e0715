"""Limits each person to one text search at a time, over all web processes."""

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from django.db import transaction

from pgqueue_admin.dialects import deadline
from pgqueue_admin.dialects.errors import Busy
from pgqueue_admin.models import session_shares
from pgqueue_admin.models.raw_sql import console_sql, rows_of

BETWEEN = 0.05  # seconds


@contextmanager
def turn(person: Hashable) -> Iterator[None]:
    """An advisory lock in a transaction on the console's database: it ends with its process, also behind a pooler.
    Waiters poll, so none waits in the database. None: a command, unlimited. Raises Busy."""
    if person is None:
        yield
        return
    with transaction.atomic():
        ends_at = time.monotonic() + min(session_shares.WAIT_SECONDS, deadline.left())
        while not _taken(person):
            if time.monotonic() >= ends_at:
                raise Busy(session_shares.ANOTHER_SEARCH)
            time.sleep(BETWEEN)
        yield


def _taken(person: Hashable) -> bool:
    [[taken]] = rows_of(console_sql.advisory_locks.search(), {"person": str(person)})
    return bool(taken)

"""Counts dead messages in the archive by queue, less often if that is slow."""

import time
from collections import Counter
from collections.abc import Iterable

from pgqueue_admin.archive import store
from pgqueue_admin.archive.store import QueueCount
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.lease_store import QUEUE as LEASE_QUEUE
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind

_SHARE = 50  # the count may take one second in this many
_WITHOUT_ARCHIVE = 30.0  # seconds: a source may have no archive, and then seldom gets one


class DeadCounts:
    def __init__(self) -> None:
        self._counts: dict[str, int] | None = None
        self._ask_at = 0.0

    def of(self, table: QueueTable) -> int | None:
        """Dead messages of an input or lease queue, in the archive; None: unknown. An error queue's rows are all
        dead."""
        if table.kind not in {TableKind.INPUT, TableKind.LEASE} or self._counts is None:
            return None
        return self._counts.get(canonical(table.address), 0)

    @property
    def total(self) -> int | None:
        """Dead messages in the whole archive, of gone queues, too. None: there is no archive."""
        return None if self._counts is None else sum(self._counts.values())

    def read(self) -> None:
        began = time.monotonic()
        if began < self._ask_at:
            return
        try:
            with queue_database().read_session() as connection:
                self._counts = _by_queue(store.counts(connection))
        except DatabaseDown:
            raise
        except DatabaseError:
            self._counts, self._ask_at = None, began + _WITHOUT_ARCHIVE
            return
        self._ask_at = began + _SHARE * (time.monotonic() - began)


def _by_queue(counts: Iterable[QueueCount]) -> dict[str, int]:
    """Original clients of the lease queue leave the queue empty."""
    found: Counter[str] = Counter()
    for row in counts:
        found[row.queue or canonical(LEASE_QUEUE)] += row.dead
    return found


def canonical(address: Address) -> str:
    return queue_database().dialect.canonical(address)

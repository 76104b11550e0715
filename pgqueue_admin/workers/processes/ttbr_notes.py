"""T16: writes down the smallest time to be received of what waits in queues, those of foreign endpoints above all."""

from collections.abc import Callable, Iterable, Mapping

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.models import Queue
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import ttbr as lifetimes
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.monitor.sampler import QueueSample
from pgqueue_admin.workers.processes import ttbr_recorder

EVERY = 30.0


class TtbrNotes:
    """A queue tells nothing new while neither end has moved: one that drains brings others to its head."""

    def __init__(self, monotonic: Callable[[], float]):
        self._monotonic, self._look_at = monotonic, 0.0
        self._ends: dict[Address, tuple[int, int | None]] = {}

    def take(self, samples: Iterable[QueueSample], ids: Mapping[Address, int]) -> None:
        if self._monotonic() < self._look_at:
            return
        self._look_at = self._monotonic() + EVERY
        ttbr_recorder.forget()
        for sample in samples:
            if sample.table.kind is TableKind.INPUT and sample.depth and sample.depth.depth:
                self._look(sample, ids[sample.table.address])

    def _look(self, sample: QueueSample, queue_id: int) -> None:
        address, depth = sample.table.address, sample.depth
        assert depth is not None
        if depth.head_seq is None or self._ends.get(address) == (depth.head_seq, depth.tail_seq):
            return
        try:
            with queue_database().reading() as connection:
                found = lifetimes.smallest(connection, sample.table, depth.head_seq)
        except DatabaseDown:
            raise
        except DatabaseError:
            return
        self._ends[address] = (depth.head_seq, depth.tail_seq)
        for kind, ttbr in found.items():
            ttbr_recorder.keep_one(Queue(pk=queue_id), kind, ttbr)

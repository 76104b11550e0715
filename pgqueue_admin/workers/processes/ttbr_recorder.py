"""Records the smallest TTBR and the expired messages of each queue and type (T16)."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from pgqueue_admin.archive.messages import clean
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.models import Endpoint, ExpiredCount, MinimumTtbr, Queue, database_clock
from pgqueue_admin.models.queue_database import QueueDatabase
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.monitor.sampler import QueueSample
from pgqueue_admin.monitor.ttbr import smallest
from pgqueue_admin.workers.reporting.metrics import MOST_TYPES, OTHER_TYPES
from pgqueue_admin.workers.sampler.sampler_store import row_of

Ttbrs = dict[str, timedelta]
Counts = dict[str, int]
AGAIN_AFTER = timedelta(hours=1)  # stores an unchanged TTBR again, instead of at each message
LAPSES_AFTER = timedelta(days=2)  # then a longer one replaces it; above a day, because nightly messages recur
FORGOTTEN_AFTER = timedelta(days=30)  # without any: a queue may be empty for long


def keep(row: Endpoint, seen: Ttbrs, told: Ttbrs) -> Ttbrs:
    """Store each type whose TTBR differs from ``told``; return what is stored now."""
    news = {kind: ttbr for kind, ttbr in seen.items() if told.get(kind) != ttbr}
    if not news:
        return told
    queue = row_of(row.schema, row.table, TableKind.INPUT, endpoint=row.name)
    for kind, ttbr in news.items():
        keep_one(queue, kind, ttbr)
    return dict(seen)


def keep_one(queue: Queue, kind: str, ttbr: timedelta) -> None:
    """The smaller one stays until it was not seen for a while: then its senders use a longer one."""
    kind, ms = _kept_as(kind, queue.ttbrs.all()), max(1, round(ttbr.total_seconds() * 1000))
    known = MinimumTtbr.objects.filter(queue=queue, message_type=kind)
    if not known.exists():
        MinimumTtbr.objects.get_or_create(
            queue=queue, message_type=kind, defaults={"ttbr_ms": ms, "last_seen_at": Now()}
        )
    now = database_clock.now()
    again, lapsed = Q(ttbr_ms=ms, last_seen_at__lt=now - AGAIN_AFTER), Q(last_seen_at__lt=now - LAPSES_AFTER)
    known.filter(Q(ttbr_ms__gt=ms) | again | lapsed).update(ttbr_ms=ms, last_seen_at=Now())


def forget() -> None:
    """Delete types that are no longer sent."""
    MinimumTtbr.objects.filter(last_seen_at__lt=database_clock.now() - FORGOTTEN_AFTER).delete()


def lost(row: Endpoint, seen: Counts, told: Counts) -> Counts:
    """Add what expired since ``told``, by type, to the day's counts; return what is stored now."""
    news = {kind: number - told.get(kind, 0) for kind, number in seen.items() if number != told.get(kind, 0)}
    if not news:
        return told
    queue = row_of(row.schema, row.table, TableKind.INPUT, endpoint=row.name)
    with transaction.atomic():  # all or none: if the session is lost in between, ``told`` stays as it was
        Queue.objects.select_for_update(no_key=True).get(pk=queue.pk)  # others name types in another order: deadlocks
        for kind, number in news.items():
            _add(queue, kind, number)
    return dict(seen)


def _add(queue: Queue, kind: str, number: int) -> None:
    today = database_clock.now().date()
    name = _kept_as(kind, queue.expired_counts.filter(day=today))
    counted, _ = ExpiredCount.objects.get_or_create(queue=queue, message_type=name, day=today)
    ExpiredCount.objects.filter(pk=counted.pk).update(number=F("number") + number, last_at=Now())


def _kept_as(kind: str, rows: QuerySet[Any]) -> str:
    """The name a type is counted under in one queue. Senders choose names: beyond MOST_TYPES, all others share one."""
    name = clean(kind, 512) or ""
    is_known = rows.filter(message_type=name).exists() or rows.count() < MOST_TYPES
    return name if is_known else OTHER_TYPES


# T16: records the smallest time to be received of waiting messages, mainly for foreign endpoints.
EVERY = 30.0


class TtbrNotes:
    """Skips a queue whose head and tail have not moved. A draining queue brings other messages to its head."""

    def __init__(self, of: QueueDatabase, monotonic: Callable[[], float]):
        self._of, self._monotonic, self._look_at = of, monotonic, 0.0
        self._ends: dict[Address, tuple[int, int | None]] = {}

    def take(self, samples: Iterable[QueueSample], ids: Mapping[Address, int]) -> None:
        if self._monotonic() < self._look_at:
            return
        self._look_at = self._monotonic() + EVERY
        forget()
        for sample in samples:
            if sample.table.kind is TableKind.INPUT and sample.depth and sample.depth.depth:
                self._look(sample, ids[sample.table.address])

    def _look(self, sample: QueueSample, queue_id: int) -> None:
        address, depth = sample.table.address, sample.depth
        assert depth is not None
        if depth.head_seq is None or self._ends.get(address) == (depth.head_seq, depth.tail_seq):
            return
        try:
            with self._of.read_session() as connection:
                found = smallest(connection, sample.table, depth.head_seq)
        except DatabaseDown:
            raise
        except DatabaseError:
            return
        self._ends[address] = (depth.head_seq, depth.tail_seq)
        for kind, ttbr in found.items():
            keep_one(Queue(pk=queue_id), kind, ttbr)

"""T16: the smallest time to be received, and how many came too late, kept per queue and type beyond the messages."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from pgqueue_admin.archive.model import clean
from pgqueue_admin.monitor.tables import Kind
from pgqueue_admin.records import clock
from pgqueue_admin.records.models import Endpoint, ExpiredCount, Queue, SmallestTtbr
from pgqueue_admin.workers.counters import MOST_TYPES, OTHER_TYPES
from pgqueue_admin.workers.queue_rows import row_of

Ttbrs = dict[str, timedelta]
Counts = dict[str, int]


def lower(row: Endpoint, seen: Ttbrs, told: Ttbrs) -> Ttbrs:
    """Write down each type whose minimum is new to us and smaller than the one on record; return what is told now."""
    news = {kind: ttbr for kind, ttbr in seen.items() if told.get(kind) != ttbr}
    if not news:
        return told
    queue = row_of(row.schema, row.table, Kind.INPUT, endpoint=row.name)
    for kind, ttbr in news.items():
        lower_one(queue, kind, ttbr)
    return dict(seen)


def lower_one(queue: Queue, kind: str, ttbr: timedelta) -> None:
    kind, ms = _kept_as(kind, queue.ttbrs.all()), round(ttbr.total_seconds() * 1000)
    known = SmallestTtbr.objects.filter(queue=queue, message_type=kind)
    if not known.exists():
        SmallestTtbr.objects.get_or_create(queue=queue, message_type=kind, defaults={"ttbr_ms": ms, "seen_at": Now()})
    known.filter(ttbr_ms__gt=ms).update(ttbr_ms=ms, seen_at=Now())


def lost(row: Endpoint, seen: Counts, told: Counts) -> Counts:
    """Add what expired since ``told``, by type, to the counts of the day; return what is told now."""
    news = {kind: number - told.get(kind, 0) for kind, number in seen.items() if number != told.get(kind, 0)}
    if not news:
        return told
    queue = row_of(row.schema, row.table, Kind.INPUT, endpoint=row.name)
    with transaction.atomic():  # all or none: what is told stays as it was where the session is lost in between
        Queue.objects.select_for_update(no_key=True).get(pk=queue.pk)  # others name types in another order: deadlocks
        for kind, number in news.items():
            _add(queue, kind, number)
    return dict(seen)


def _add(queue: Queue, kind: str, number: int) -> None:
    today = clock.now().date()
    name = _kept_as(kind, queue.expired_counts.filter(day=today))
    counted, _ = ExpiredCount.objects.get_or_create(queue=queue, message_type=name, day=today)
    ExpiredCount.objects.filter(pk=counted.pk).update(number=F("number") + number, last_at=Now())


def _kept_as(kind: str, rows: QuerySet[Any]) -> str:
    """Of one queue. Senders choose the names of types: of more than are remembered, the rest are one."""
    name = clean(kind, 512) or ""
    is_known = rows.filter(message_type=name).exists() or rows.count() < MOST_TYPES
    return name if is_known else OTHER_TYPES

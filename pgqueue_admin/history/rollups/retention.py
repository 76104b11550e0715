"""Retention of Trends' figures: old rows are deleted in chunks, finer grains first."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Min, QuerySet

from pgqueue_admin.history.rollups import closed_periods
from pgqueue_admin.models import CountBucket, FailureBucket, FailureRollup, LatencyBucket, RetryOutcome, Rollup
from pgqueue_admin.models.time_grains import STEPS, floor
from pgqueue_admin.models.trends_retention import failures_from, kept_for

CHUNK = 5000  # rows per statement: a short transaction of its own


def forget(now: datetime) -> int:
    """Delete a chunk of each kind of figures; return how many rows. Call again until it returns 0."""
    return sum(_chunk(rows) for rows in _too_old(now))


def _too_old(now: datetime) -> Iterator[QuerySet[Any]]:
    """Minutes and hours; failures and retry outcomes, which know their minute, for as long as hours.

    Ordered by time: without an order, a chunk would be searched in the whole table.
    """
    for grain, kept in kept_for().items():
        for model in (Rollup, CountBucket, LatencyBucket):
            yield model._default_manager.filter(grain=grain, at__lt=now - kept).order_by("at")
    if before := failures_from(now):
        yield FailureRollup.objects.filter(at__lt=before).order_by("at")
        for grain in closed_periods.AT_ONCE:
            yield FailureBucket.objects.filter(grain=grain, at__lt=before - STEPS[grain]).order_by("at")
        yield RetryOutcome.objects.filter(last_failed_at__lt=before).order_by("last_failed_at")
        succeeded = RetryOutcome.objects.filter(last_failed_at=None, last_succeeded_at__lt=before)
        yield succeeded.order_by("last_succeeded_at")


def _chunk(rows: QuerySet[Any]) -> int:
    return rows.model._default_manager.filter(pk__in=rows.values("pk")[:CHUNK]).delete()[0]


def finest(grain: str, since: datetime, until: datetime) -> str:
    """``grain``, or the finest coarser one that has lost nothing in the window which coarser ones still have."""
    grains = list(STEPS)[list(STEPS).index(grain) :]
    for place, each in enumerate(grains):
        if not any(_is_forgotten(each, coarser, since, until) for coarser in grains[place + 1 :]):
            return each
    return grains[-1]


def reaches(grain: str, at: datetime) -> bool:
    """Whether steps of this grain go back to ``at``: what is missing after it did not happen."""
    first = _first(grain)
    return first is not None and first <= at


def _is_forgotten(finer: str, coarser: str, since: datetime, until: datetime) -> bool:
    """Whether the window has coarser steps from before all finer ones."""
    first = _first(finer)
    if first is not None and first <= since:
        return False
    end = min(until, floor(first, coarser)) if first else until
    return Rollup.objects.filter(grain=coarser, at__gte=floor(since, coarser), at__lt=end).exists()


def _first(grain: str) -> datetime | None:
    """Read from the end of the index: whether one exists before a time would be searched in the whole table."""
    first: datetime | None = Rollup.objects.filter(grain=grain).aggregate(at=Min("at"))["at"]
    return first

"""How long figures of Trends are kept: old ones go a chunk at a time, finer grains first."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Min, QuerySet

from pgqueue_admin.history.rollups import closed_periods
from pgqueue_admin.models import CountBucket, FailureBucket, FailureRollup, LatencyBucket, RetryOutcome, Rollup
from pgqueue_admin.models.time_grains import STEPS, floor
from pgqueue_admin.models.trends_retention import failures_from, kept_for

CHUNK = 5000  # rows a statement: a transaction of its own, which holds up nobody for long


def forget(now: datetime) -> int:
    """A chunk of each kind of figures; how many rows went. Call it again until none does."""
    return sum(_chunk(rows) for rows in _too_old(now))


def _too_old(now: datetime) -> Iterator[QuerySet[Any]]:
    """Minutes, hours; and failures and stories, which know their minute, for as long as hours.

    The oldest first: in no order a chunk would be looked for in the whole table.
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
    """``grain``, or the next coarser one of which nothing in the window is forgotten that still coarser ones know."""
    grains = list(STEPS)[list(STEPS).index(grain) :]
    for place, each in enumerate(grains):
        if not any(_is_forgotten(each, coarser, since, until) for coarser in grains[place + 1 :]):
            return each
    return grains[-1]


def reaches(grain: str, at: datetime) -> bool:
    """Whether there are steps of this grain from then or before: what is not found after it was not there."""
    first = _first(grain)
    return first is not None and first <= at


def _is_forgotten(finer: str, coarser: str, since: datetime, until: datetime) -> bool:
    """Whether there are coarser steps of the window from before all finer ones."""
    first = _first(finer)
    if first is not None and first <= since:
        return False
    end = min(until, floor(first, coarser)) if first else until
    return Rollup.objects.filter(grain=coarser, at__gte=floor(since, coarser), at__lt=end).exists()


def _first(grain: str) -> datetime | None:
    """At the end of its index: whether there is any before some time would be looked for in the whole table."""
    first: datetime | None = Rollup.objects.filter(grain=grain).aggregate(at=Min("at"))["at"]
    return first

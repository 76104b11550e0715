"""Figures that are too old go, a chunk at a time. Files of history have a life of their own: ``retention``."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from pgqueue_admin.history.rollups import closed_periods
from pgqueue_admin.models import CountBucket, FailureBucket, FailureRollup, LatencyBucket, RetryOutcome, Rollup
from pgqueue_admin.models.time_grains import STEPS
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

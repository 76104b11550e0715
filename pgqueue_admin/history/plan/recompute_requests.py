"""Requests to recompute days: one transaction replaces the old figures by the new."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from pgqueue_admin.history import ledger
from pgqueue_admin.history.rollups import closed_periods
from pgqueue_admin.history.rollups.copy_format import BatchRollups
from pgqueue_admin.models import DataFile, FailureRollup, RecomputeRequest, RetryOutcome, Rollup, history_requests
from pgqueue_admin.models.time_grains import STEPS


class FilesMoved(Exception):
    """Files of the day were added or removed meanwhile: the figures do not match them."""


def due() -> RecomputeRequest | None:
    """The oldest request."""
    return RecomputeRequest.objects.filter(is_wanted=True).order_by("day").first()


def is_wanted(day: RecomputeRequest) -> bool:
    """Whether the request is still open and was not made once more."""
    return _wanted(day).exists()


def files(day: RecomputeRequest) -> list[DataFile]:
    return list(history_requests.files().filter(day=day.day).order_by("pk"))


@transaction.atomic
def recomputed(day: RecomputeRequest, read: Sequence[DataFile], figures: Iterable[BatchRollups]) -> None:
    """Replace the day's figures by these files' in one transaction. Raises Superseded, FilesMoved, FilesLost."""
    closed_periods.alone()
    if not _wanted(day).update(is_wanted=False, recomputed_at=Now(), aggregated_at=None, error=""):
        raise ledger.Superseded(f"{day.day} is not to be recomputed any more.")
    if {file.pk for file in files(day)} != {file.pk for file in read}:
        raise FilesMoved(f"Files of {day.day} came or went while they were counted.")
    history_requests.needs_files(day.day)
    for rows in figures_of(day):
        rows.delete()
    ledger.count(None, figures)
    closed_periods.doubt_day(day.begin)


def figures_of(day: RecomputeRequest) -> Iterator[QuerySet[Any]]:
    """All figures of the day. ``grain`` and ``told_since`` make these queries use indexes: a batch that ends waits
    until the rows are deleted."""
    begin, end = day.begin, day.begin + timedelta(days=1)
    yield Rollup.objects.filter(grain__in=STEPS, at__gte=begin, at__lt=end)
    yield FailureRollup.objects.filter(at__gte=begin, at__lt=end)
    told_since = Q(last_failed_at__gte=begin) | Q(last_succeeded_at__gte=begin)
    yield RetryOutcome.objects.filter(told_since, first_at__gte=begin, first_at__lt=end)


def failed(day: RecomputeRequest, error: str) -> None:
    """Close the request: the figures stay as they were, and nothing retries by itself."""
    _wanted(day).update(is_wanted=False, error=error[:2000])


def _wanted(day: RecomputeRequest) -> Any:
    return RecomputeRequest.objects.filter(pk=day.pk, asked_at=day.asked_at, is_wanted=True)

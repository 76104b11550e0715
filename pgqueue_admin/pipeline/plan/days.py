"""Days whose figures somebody wants anew, and the ledger of that: one transaction puts new ones in place of old."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from pgqueue_admin.pipeline import ledger
from pgqueue_admin.pipeline.figures import cut_steps
from pgqueue_admin.pipeline.figures.counted import Figures
from pgqueue_admin.records import history
from pgqueue_admin.records.models import FailureRollup, HistoryDay, HistoryFile, Rollup, StoryPart
from pgqueue_admin.records.steps import STEPS


class Moved(Exception):
    """Files of the day came or went meanwhile: what was counted is not what is there."""


def due() -> HistoryDay | None:
    """The oldest."""
    return HistoryDay.objects.filter(is_wanted=True).order_by("day").first()


def is_wanted(day: HistoryDay) -> bool:
    """Whether somebody still asks for it, and did not ask once more."""
    return _wanted(day).exists()


def files(day: HistoryDay) -> list[HistoryFile]:
    return list(history.files().filter(day=day.day).order_by("pk"))


@transaction.atomic
def recomputed(day: HistoryDay, read: Sequence[HistoryFile], figures: Iterable[Figures]) -> None:
    """The figures of these files in place of all of that day, or none. Raises Superseded, Moved, history.FilesLost."""
    cut_steps.alone()
    if not _wanted(day).update(is_wanted=False, recomputed_at=Now(), summed_at=None, error=""):
        raise ledger.Superseded(f"{day.day} is not to be recomputed any more.")
    if {file.pk for file in files(day)} != {file.pk for file in read}:
        raise Moved(f"Files of {day.day} came or went while they were counted.")
    history.needs_files(day.day)
    for rows in figures_of(day):
        rows.delete()
    ledger.count(None, figures)
    cut_steps.doubt_day(day.begin)


def figures_of(day: HistoryDay) -> Iterator[QuerySet[Any]]:
    """All that was counted of it. By indexes, which the grain and ``told_since`` are for: who ends a batch waits until
    these rows are gone."""
    begin, end = day.begin, day.begin + timedelta(days=1)
    yield Rollup.objects.filter(grain__in=STEPS, at__gte=begin, at__lt=end)
    yield FailureRollup.objects.filter(at__gte=begin, at__lt=end)
    told_since = Q(last_failed_at__gte=begin) | Q(last_succeeded_at__gte=begin)
    yield StoryPart.objects.filter(told_since, first_at__gte=begin, first_at__lt=end)


def failed(day: HistoryDay, error: str) -> None:
    """Its figures stay as they were, and nobody tries again by themselves."""
    _wanted(day).update(is_wanted=False, error=error[:2000])


def _wanted(day: HistoryDay) -> Any:
    return HistoryDay.objects.filter(pk=day.pk, asked_at=day.asked_at, is_wanted=True)

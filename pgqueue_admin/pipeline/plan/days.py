"""Days whose figures somebody wants anew, and the ledger of that: one transaction puts new ones in place of old."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Model
from django.db.models.functions import Now

from pgqueue_admin.pipeline import ledger
from pgqueue_admin.pipeline.figures import cut_steps
from pgqueue_admin.pipeline.figures.counted import Figures
from pgqueue_admin.records import history
from pgqueue_admin.records.models import FailureRollup, HistoryDay, HistoryFile, Rollup, StoryPart

KNOWN_BY: dict[type[Model], str] = {Rollup: "at", FailureRollup: "at", StoryPart: "first_at"}


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
    for model, instant in KNOWN_BY.items():
        of_day = {f"{instant}__gte": day.begin, f"{instant}__lt": day.begin + timedelta(days=1)}
        model._default_manager.filter(**of_day).delete()
    ledger.count(None, figures)
    cut_steps.doubt_day(day.begin)


def failed(day: HistoryDay, error: str) -> None:
    """Its figures stay as they were, and nobody tries again by themselves."""
    _wanted(day).update(is_wanted=False, error=error[:2000])


def _wanted(day: HistoryDay) -> Any:
    return HistoryDay.objects.filter(pk=day.pk, asked_at=day.asked_at, is_wanted=True)

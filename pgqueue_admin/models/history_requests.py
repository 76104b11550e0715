"""Requests to history: read now, cancel, recompute. Stored in the ledger; the history process picks them up."""

from datetime import date, timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Now

from pgqueue_admin.models import (
    AuditEntry,
    DataFile,
    HistoryBatch,
    HistoryCompaction,
    HistorySource,
    RecomputeRequest,
    Rollup,
)
from pgqueue_admin.models.time_grains import midnight

HELD_FOR = timedelta(hours=1)
_OPEN = (HistoryBatch.State.PLANNED, HistoryBatch.State.RUNNING)


class FilesLost(Exception):
    """A day's files hold fewer rows than were counted: recomputed, its figures would shrink."""


class RecomputeResult(NamedTuple):
    """Days to recompute, and the number of days left out because their files are not all kept."""

    days: list[date]
    left_out: int


class CancelResult(NamedTuple):
    """How much running or planned work was ended."""

    batches: int
    compactions: int
    days: int  # to be recomputed


class OpenWork(NamedTuple):
    """Running or planned work."""

    batches: QuerySet[HistoryBatch]
    compactions: QuerySet[HistoryCompaction]
    days: QuerySet[RecomputeRequest]  # to be recomputed


def going_on() -> OpenWork:
    return OpenWork(
        HistoryBatch.objects.filter(state__in=_OPEN),
        HistoryCompaction.objects.filter(state=HistoryCompaction.State.RUNNING),
        RecomputeRequest.objects.filter(is_wanted=True),
    )


@transaction.atomic
def read_now(person: Any, origin: str) -> None:
    there = HistorySource.objects.filter(exists=True)
    there.exclude(paused_until=None).update(blocked_reason="")  # it said that reading is paused
    there.update(requested_at=Now(), paused_until=None)
    _audit(person, origin, "run")


@transaction.atomic
def cancel(person: Any, origin: str) -> CancelResult:
    """End running and planned work, and pause the tables of ended batches for an hour. Their rows are planned anew."""
    why = f"Cancelled by {person.get_username()}."
    found = going_on()
    batches = list(found.batches.select_for_update())  # waits for a batch that is committing: it is done then
    ended = CancelResult(
        HistoryBatch.objects.filter(pk__in=[each.pk for each in batches]).update(
            state=HistoryBatch.State.ABANDONED, token=None, step="", ended_at=Now(), error=why
        ),
        found.compactions.update(state=HistoryCompaction.State.ABANDONED, ended_at=Now(), error=why),
        found.days.update(is_wanted=False, error=why),
    )
    note = f"{why} It is read again in an hour, or when somebody presses Read now."
    tables = {each.source_id for each in batches}
    HistorySource.objects.filter(pk__in=tables).update(paused_until=Now() + HELD_FOR, blocked_reason=note)
    if any(ended):
        _audit(person, origin, "cancel", count=sum(ended))
    return ended


@transaction.atomic
def recompute(person: Any, origin: str, since: date, until: date) -> RecomputeResult:
    """Request that these days' figures be recomputed from their files."""
    found = recomputable(since, until)
    for day in found.days:
        RecomputeRequest.objects.update_or_create(day=day, defaults={"asked_at": Now(), "is_wanted": True, "error": ""})
    if found.days:
        after = {"since": since.isoformat(), "until": until.isoformat()}
        _audit(person, origin, "recompute", count=len(found.days), after=after)
    return found


def recomputable(since: date, until: date) -> RecomputeResult:
    """What ``recompute`` would request."""
    days = _days(since, until)
    chosen = sorted(day for day, is_whole in days.items() if is_whole)
    return RecomputeResult(chosen, len(days) - len(chosen))


def needs_files(day: date) -> None:
    """Raises FilesLost."""
    if not _days(day, day).get(day):
        raise FilesLost("Not all that was counted of it is in files any more: its figures stay as they are.")


def files() -> QuerySet[DataFile]:
    """Files of messages."""
    return DataFile.objects.filter(dataset=DataFile.Dataset.HISTORY)


def other_files() -> QuerySet[DataFile]:
    """Files of everything else: rejected rows, depths, events."""
    return DataFile.objects.exclude(dataset=DataFile.Dataset.HISTORY)


def _days(since: date, until: date) -> dict[date, bool]:
    """The days with files or figures, and whether their files hold every row that was counted."""
    filed = dict(files().filter(day__range=(since, until)).values_list("day").annotate(rows=Sum("rows")))
    figures = Rollup.objects.filter(grain="day", at__range=(midnight(since), midnight(until)))
    counted = {at.date(): number for at, number in figures.values_list("at").annotate(number=Sum("messages"))}
    return {day: filed.get(day, 0) >= counted.get(day, 0) for day in filed.keys() | counted.keys()}


def wanted_now() -> bool:
    """Whether a person asked for a read or a recompute that is still open."""
    asked = (
        HistorySource.objects.filter(exists=True).exclude(requested_at=None).exclude(looked_at__gte=F("requested_at"))
    )
    return asked.exists() or RecomputeRequest.objects.filter(is_wanted=True).exists()


def _audit(person: Any, origin: str, verb: str, **about: Any) -> None:
    who = person.get_username()
    AuditEntry.objects.create(who=who, verb=verb, noun="history", subject="history", origin=origin, **about)

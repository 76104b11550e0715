"""What people ask of the history: read now, cancel, recompute. Marks in the ledger, picked up by whoever reads."""

from datetime import date, timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce, Now

from pgqueue_admin.records.models import AuditEntry, HistoryBatch, HistoryCompaction, HistoryPart, HistorySource

HELD_FOR = timedelta(hours=1)
_OPEN = (HistoryBatch.State.PLANNED, HistoryBatch.State.RUNNING)


class Recomputed(NamedTuple):
    """How many batches are counted anew, and how many cannot be: not all of their files are kept."""

    batches: int
    left_out: int


@transaction.atomic
def read_now(person: Any, origin: str) -> None:
    HistorySource.objects.update(wanted_at=Now(), held_until=None)
    _audit(person, origin, "run")


@transaction.atomic
def cancel(person: Any, origin: str) -> int:
    """End what runs or is planned, and rest for an hour; how much that was. Its rows are planned anew."""
    why = f"Cancelled by {person.get_username()}."
    batches = HistoryBatch.objects.filter(state__in=_OPEN)
    tables = list(batches.values_list("source", flat=True))
    ended = batches.update(state=HistoryBatch.State.ABANDONED, token=None, ended_at=Now(), error=why)
    compactions = HistoryCompaction.objects.filter(state=HistoryCompaction.State.RUNNING)
    ended += compactions.update(state=HistoryCompaction.State.ABANDONED, ended_at=Now(), error=why)
    ended += HistoryBatch.objects.exclude(recompute_at=None).update(recompute_at=None)
    note = f"{why} It is read again in an hour, or when somebody presses Read now."
    HistorySource.objects.filter(pk__in=tables).update(held_until=Now() + HELD_FOR, note=note)
    if ended:
        _audit(person, origin, "cancel", count=ended)
    return ended


@transaction.atomic
def recompute(person: Any, origin: str, since: date, until: date) -> Recomputed:
    """Have the figures of these days made anew, whole batches at a time, from their files."""
    touched = HistoryPart.objects.filter(file__dataset="history", file__day__gte=since, file__day__lte=until)
    done = HistoryBatch.objects.filter(state=HistoryBatch.State.DONE, pk__in=touched.values("batch"))
    filed = Coalesce(Sum("parts__rows", filter=Q(parts__file__dataset="history")), 0)
    whole = done.annotate(filed=filed).filter(filed=F("kept"))
    chosen = list(whole.values_list("pk", flat=True))
    HistoryBatch.objects.filter(pk__in=chosen).update(recompute_at=Now())
    if chosen:
        after = {"since": since.isoformat(), "until": until.isoformat()}
        _audit(person, origin, "recompute", count=len(chosen), after=after)
    return Recomputed(len(chosen), done.count() - len(chosen))


def wanted_now() -> bool:
    """Whether somebody asked since it was last looked at."""
    asked = HistorySource.objects.exclude(wanted_at=None).exclude(looked_at__gte=F("wanted_at"))
    return asked.exists() or HistoryBatch.objects.exclude(recompute_at=None).exists()


def _audit(person: Any, origin: str, verb: str, **about: Any) -> None:
    who = person.get_username()
    AuditEntry.objects.create(who=who, verb=verb, noun="pipeline", subject="history", origin=origin, **about)

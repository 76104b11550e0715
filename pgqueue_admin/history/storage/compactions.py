"""Chooses files to compact and records it in the ledger. The manifest names each row once, before and after."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Now

from pgqueue_admin.history.ledger import Superseded
from pgqueue_admin.history.storage.layout import VERSION
from pgqueue_admin.models import DataFile, FileBatch, HistoryCompaction, HistorySource, database_clock

MANY = 16  # small files of a day: compacted even while more arrive
FULL = 64_000_000  # bytes: larger files stay as they are
AT_ONCE = 500  # files
REST = timedelta(hours=1)  # without a new file, or since a failure
LONGEST = 3600.0  # seconds that one may take
State = HistoryCompaction.State


class DueCompaction(NamedTuple):
    source: HistorySource
    day: date
    files: list[DataFile]


def due(now: datetime, many: int = MANY) -> DueCompaction | None:
    """The table and day with the most small files, if they are many, or an hour old."""
    failed = HistoryCompaction.objects.filter(
        source=OuterRef("source"), day=OuterRef("day"), state=State.ABANDONED, started_at__gt=now - REST
    )
    days = _small().exclude(Exists(failed)).values("source", "day").annotate(number=Count("pk"), last=Max("added_at"))
    is_due = Q(number__gte=many) | Q(number__gte=2, last__lt=now - REST)
    found = days.filter(is_due).order_by("-number", "day", "source").first()
    if found is None:
        return None
    source, day = HistorySource.objects.get(pk=found["source"]), found["day"]
    assert day  # every file of history has one
    return DueCompaction(source, day, _at_once(list(_small().filter(source=source, day=day).order_by("pk"))))


def _small() -> QuerySet[DataFile]:
    """Small files; those of older versions lack columns and stay as they are."""
    history = DataFile.objects.filter(dataset=DataFile.Dataset.HISTORY, path__startswith=f"{VERSION}/")
    return history.filter(bytes__lt=FULL)


def _at_once(files: Sequence[DataFile]) -> list[DataFile]:
    """At least two files, and more until they fill one."""
    taken, size = list(files[:2]), sum(file.bytes for file in files[:2])
    for file in files[2:AT_ONCE]:
        if size >= FULL:
            break
        taken.append(file)
        size += file.bytes
    return taken


@transaction.atomic
def begin(due: DueCompaction) -> HistoryCompaction:
    """Start a compaction: an earlier one of this table can no longer commit."""
    _end(HistoryCompaction.objects.filter(source=due.source), "Begun anew.")
    rows, size = sum(file.rows for file in due.files), sum(file.bytes for file in due.files)
    about = {"files": len(due.files), "rows": rows, "bytes_before": size}
    return HistoryCompaction.objects.create(source=due.source, day=due.day, token=uuid4(), **about)


@transaction.atomic
def done(compaction: HistoryCompaction, due: DueCompaction, made: DataFile) -> None:
    """Replace the old files by the new one in the manifest, in one transaction. Raises Superseded."""
    mine = HistoryCompaction.objects.filter(pk=compaction.pk, state=State.RUNNING)
    if not mine.update(state=State.DONE, ended_at=Now(), bytes_after=made.bytes):
        raise Superseded(f"The compaction of {due.day} was cancelled, or begun by another.")
    taken = DataFile.objects.filter(pk__in=[file.pk for file in due.files])
    if len(taken.select_for_update()) != len(due.files):
        raise Superseded(f"Files of {due.day} were taken away meanwhile.")
    made.save()
    rows = FileBatch.objects.filter(file__in=taken).values("batch").annotate(number=Sum("rows")).order_by("batch")
    parts = [FileBatch(file=made, batch_id=each["batch"], rows=each["number"]) for each in rows]
    FileBatch.objects.bulk_create(parts)
    taken.delete()


def failed(compaction: HistoryCompaction, error: str) -> None:
    _end(HistoryCompaction.objects.filter(pk=compaction.pk), error)


def give_up_old() -> None:
    """Abandon compactions that took longer than LONGEST, wherever their driver is: they can no longer commit."""
    _end(
        HistoryCompaction.objects.filter(started_at__lt=database_clock.now() - timedelta(seconds=LONGEST)),
        "It took too long.",
    )


def is_running(token: UUID) -> bool:
    return HistoryCompaction.objects.filter(token=token, state=State.RUNNING).exists()


def _end(compactions: QuerySet[HistoryCompaction], why: str) -> None:
    running = compactions.filter(state=State.RUNNING)
    running.update(state=State.ABANDONED, ended_at=Now(), error=why[:2000])

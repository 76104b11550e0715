"""Which files become one, and the ledger of that. What is read by the manifest has each row once, before and after."""

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

MANY = 16  # small files of a day: they become one though more will come
FULL = 64_000_000  # bytes: a file of this size stays as it is
AT_ONCE = 500  # files
REST = timedelta(hours=1)  # without a new file, or since it failed
LONGEST = 3600.0  # seconds that one may take
State = HistoryCompaction.State


class DueCompaction(NamedTuple):
    source: HistorySource
    day: date
    files: list[DataFile]


def due(now: datetime, many: int = MANY) -> DueCompaction | None:
    """The day of a table with the most small files, if they are many, or no more came for an hour."""
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
    """Those of older versions lack columns: they stay as they are."""
    history = DataFile.objects.filter(dataset=DataFile.Dataset.HISTORY, path__startswith=f"{VERSION}/")
    return history.filter(bytes__lt=FULL)


def _at_once(files: Sequence[DataFile]) -> list[DataFile]:
    """Two at least, and then until they are full."""
    taken, size = list(files[:2]), sum(file.bytes for file in files[:2])
    for file in files[2:AT_ONCE]:
        if size >= FULL:
            break
        taken.append(file)
        size += file.bytes
    return taken


@transaction.atomic
def begin(due: DueCompaction) -> HistoryCompaction:
    """Whoever was at this table before can no longer commit."""
    _end(HistoryCompaction.objects.filter(source=due.source), "Begun anew.")
    rows, size = sum(file.rows for file in due.files), sum(file.bytes for file in due.files)
    about = {"files": len(due.files), "rows": rows, "bytes_before": size}
    return HistoryCompaction.objects.create(source=due.source, day=due.day, token=uuid4(), **about)


@transaction.atomic
def done(compaction: HistoryCompaction, due: DueCompaction, made: DataFile) -> None:
    """The new file in place of those that it was made of, or nothing. Raises Superseded."""
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
    """One that has taken longer than any may, wherever its driver is, can no longer commit."""
    _end(
        HistoryCompaction.objects.filter(started_at__lt=database_clock.now() - timedelta(seconds=LONGEST)),
        "It took too long.",
    )


def is_running(token: UUID) -> bool:
    return HistoryCompaction.objects.filter(token=token, state=State.RUNNING).exists()


def _end(compactions: QuerySet[HistoryCompaction], why: str) -> None:
    running = compactions.filter(state=State.RUNNING)
    running.update(state=State.ABANDONED, ended_at=Now(), error=why[:2000])

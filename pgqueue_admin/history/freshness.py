"""How far history is complete, what blocks it, and which rows were rejected."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from django.conf import settings
from django.db.models import Max, Q
from django.db.models.functions import Coalesce

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import ledger
from pgqueue_admin.history.ledger import BEFORE_ALL
from pgqueue_admin.history.sources.tables import ARCHIVE
from pgqueue_admin.models import (
    ArchiveSample,
    HistoryBatch,
    HistorySource,
    Process,
    Sample,
    database_clock,
    processes,
    samples,
)
from pgqueue_admin.models.queue_database import queues_in
from pgqueue_admin.models.raw_sql import console_sql, rows_of


# How far history has read the archive. Retention may delete only what is older.
class Watermark(NamedTuple):
    """History holds every row visible in ``snapshot`` (empty: none). Files hold the events that are visible in
    ``events`` and older than ``events_before``."""

    snapshot: str = ""
    events: str = BEFORE_ALL
    events_before: datetime | None = None


def of_archive(cluster: str, oid: int | None) -> Watermark:
    """For exactly this table in this cluster, else empty. A source whose oid was never recorded matches any table."""
    known = HistorySource.objects.filter(Q(oid=oid) | Q(oid=None), table=ARCHIVE, cluster=cluster).first()
    return Watermark(known.snapshot, known.events_snapshot or BEFORE_ALL, known.events_before) if known else Watermark()


LIMIT = timedelta(minutes=15)


class HistoryFreshness:
    """Each figure is queried once, by the page that shows it."""

    @cached_property
    def watermark(self) -> datetime | None:
        """None: some table was never read to its end."""
        complete = [watermark for watermark, _ in self._sources]
        return min(filter(None, complete), default=None) if all(complete) else None

    @cached_property
    def rests_until(self) -> datetime | None:
        """After a cancel: until when some tables are not read, unless requested."""
        return max(self._held, default=None)

    @property
    def rests_in_part(self) -> str:
        """How many of the tables that concerns; empty: all."""
        held, known = len(self._held), len(self._sources)
        return f"{held} of {known} tables" if held < known else ""

    @cached_property
    def _held(self) -> list[datetime]:
        return [until for _, until in self._sources if until and until > database_clock.now()]

    @cached_property
    def begun(self) -> bool:
        return HistoryBatch.objects.exists()

    @property
    def is_on(self) -> bool:
        return bool(settings.PGQUEUE["SPARK_MASTER"])

    @cached_property
    def _sources(self) -> list[tuple[datetime | None, datetime | None]]:
        """If no table is left, history is as complete as it ever was: up to the end of the last one to go."""
        known = HistorySource.objects.values_list("watermark", "paused_until")
        return list(known.filter(exists=True)) or list(known.exclude(watermark=None).order_by("-watermark")[:1])


@dataclass(frozen=True, slots=True)
class HistoryStall:
    """A table that history no longer reads, or never began to read.

    ``since``: up to when it is complete; during the first read, when it last advanced; if never begun, when it became
    readable.
    """

    class How(StrEnum):
        BEHIND = "behind"
        FIRST = "first"  # never read to its end
        UNBEGUN = "unbegun"

    table: str
    since: datetime
    why: str
    how: How


def stalls(now: datetime) -> list[HistoryStall]:
    """Sources further behind than LIMIT; a first read advances with every batch. Then tables with messages that nothing
    began to read for as long."""
    there = HistorySource.objects.filter(exists=True).order_by("table")
    behind = [(each, since) for each in there if now - (since := _moved(each)) > LIMIT]
    left = [(table, since) for table, since in unbegun(LIMIT) if now - since > LIMIT]
    return [
        *[
            HistoryStall(each.table, since, each.blocked_reason or _error_of(each), _how(each))
            for each, since in behind
        ],
        *[HistoryStall(table, since, why_unread(), HistoryStall.How.UNBEGUN) for table, since in left],
    ]


def _how(source: HistorySource) -> HistoryStall.How:
    return HistoryStall.How.BEHIND if source.watermark else HistoryStall.How.FIRST


def _moved(source: HistorySource) -> datetime:
    if source.watermark:
        return source.watermark
    done = source.batches.filter(state=HistoryBatch.State.DONE)
    last: datetime | None = done.aggregate(last=Max("ended_at"))["last"]
    return max(filter(None, [source.first_seen_at, last]))


def _error_of(source: HistorySource) -> str:
    last = source.batches.filter(state__in=ledger.OPEN).first()
    return last.error if last else ""


# Rows that were read but rejected, by reason, from the ledger.
class RejectedRow(NamedTuple):
    reason: str
    rows: int
    last: datetime


def rejections() -> list[RejectedRow]:
    """The most frequent reason first."""
    return [RejectedRow(*row) for row in rows_of(console_sql.trends.rejected())]


# Tables with messages that history never began to read: the ledger has no row for them.
_NEVER = "No process for history has ever run."


def unbegun(gap: timedelta) -> list[tuple[str, datetime]]:
    """Each table with the time from which it could have been read: a message was first seen there, and history
    processes ran, with no longer ``gap`` since. As sampled: dead messages in the archive, any in an audit queue."""
    known = set(HistorySource.objects.values_list("table", flat=True))
    found = [*_archive(known), *_audits(known)]
    if found and (started := _started(gap)):
        return [(table, max(seen, started)) for table, seen in found]
    return found


def _started(gap: timedelta) -> datetime | None:
    """Start of the present unbroken run of history processes; None: there was never one.

    A gap longer than ``gap`` means that history was switched off: earlier processes could not read what came later.
    """
    started: datetime | None = None
    ran = Process.objects.filter(role="history").annotate(last=Coalesce("ended_at", "heartbeat_at"))
    for began, last in ran.order_by("-last").values_list("started_at", "last"):
        if started and started - last > gap:
            break
        started = min(started or began, began)
    return started


def why_unread() -> str:
    """The error of the running history process, else of the last one that ended."""
    runs = processes.heard_of().filter(role="history").order_by("-heartbeat_at").first()
    last = runs or Process.objects.filter(role="history").order_by("-heartbeat_at").first()
    if last is None:
        return _NEVER
    said: str = last.last_error.strip().partition("\n")[0]
    return said if runs else f"No process for history runs. {said}".strip()


def _archive(known: set[str]) -> Iterator[tuple[str, datetime]]:
    newest = samples.archive() if ARCHIVE not in known else None
    if newest and newest.dead:
        yield ARCHIVE, ArchiveSample.objects.filter(dead__gt=0).earliest("at").at


def _audits(known: set[str]) -> Iterator[tuple[str, datetime]]:
    for queue in queues_in("").filter(kind="audit", gone_since=None, latest__depth__gt=0).select_related("latest"):
        if (address := postgresql().canonical(Address(queue.schema, queue.table))) not in known:
            first = Sample.objects.filter(queue=queue, depth__gt=0).order_by("at").first()
            yield address, first.at if first else queue.latest.at

"""How far history is complete, and what keeps it back."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from django.conf import settings
from django.db.models import Max

from pgqueue_admin.history import ledger
from pgqueue_admin.history.sources import unread_tables
from pgqueue_admin.models import HistoryBatch, HistorySource, database_clock

LIMIT = timedelta(minutes=15)


class HistoryFreshness:
    """Each asked for once, by who shows it."""

    @cached_property
    def complete_to(self) -> datetime | None:
        """None: something has never been read to its end."""
        complete = [complete_to for complete_to, _ in self._sources]
        return min(filter(None, complete), default=None) if all(complete) else None

    @cached_property
    def rests_until(self) -> datetime | None:
        """Somebody cancelled: until when not all tables are read, unless asked."""
        return max(self._held, default=None)

    @property
    def rests_in_part(self) -> str:
        """Of how many tables that is said; empty: of all."""
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
        """Where no table is there any more, history is as complete as it ever was: to the end of the last to go."""
        known = HistorySource.objects.values_list("complete_to", "held_until")
        return list(known.filter(is_there=True)) or list(known.exclude(complete_to=None).order_by("-complete_to")[:1])


@dataclass(frozen=True, slots=True)
class HistoryStall:
    """A table that history is not read from any more, or was never begun with.

    ``since``: up to when it is complete; while it is read for the first time, when it last moved; where it was not
    begun, when it could have been read.
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
    """The sources that are further behind than LIMIT. One that is read for the first time moves with every batch. Then
    tables that nobody has begun with for as long, although messages lie there."""
    there = HistorySource.objects.filter(is_there=True).order_by("table")
    behind = [(each, since) for each in there if now - (since := _moved(each)) > LIMIT]
    left = [(table, since) for table, since in unread_tables.unbegun(LIMIT) if now - since > LIMIT]
    return [
        *[HistoryStall(each.table, since, each.note or _error_of(each), _how(each)) for each, since in behind],
        *[HistoryStall(table, since, unread_tables.why(), HistoryStall.How.UNBEGUN) for table, since in left],
    ]


def _how(source: HistorySource) -> HistoryStall.How:
    return HistoryStall.How.BEHIND if source.complete_to else HistoryStall.How.FIRST


def _moved(source: HistorySource) -> datetime:
    if source.complete_to:
        return source.complete_to
    done = source.batches.filter(state=HistoryBatch.State.DONE)
    last: datetime | None = done.aggregate(last=Max("ended_at"))["last"]
    return max(filter(None, [source.first_seen_at, last]))


def _error_of(source: HistorySource) -> str:
    last = source.batches.filter(state__in=ledger.OPEN).first()
    return last.error if last else ""

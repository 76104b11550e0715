"""Skew of a delayed table's due times, by its writers' session time zone and clocks.

An endpoint hands a UTC wall clock to a column with a zone, which its session's zone then reads (wire sheet 3): a minute
from New York lands five hours and a minute away. Our sessions are in UTC, and what the headers say tells the rest.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.monitor import batch_query
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.transport.wire import headers as wire
from pgqueue_admin.transport.wire.headers import Headers, HeadersUnreadable
from pgqueue_admin.transport.wire.wire_times import parse_time

LOOKED_AT = 20  # so many of the soonest
_QUARTER = timedelta(minutes=15)  # zones differ by whole quarters of an hour; more of a clock's error is none
_WIDEST = timedelta(hours=14, minutes=7)  # more is no zone: somebody has set another due time by hand
_NOTABLE = timedelta(seconds=5)
_CLOCK_BESIDE_ZONE = timedelta(minutes=1)  # a zone is off by whole quarters; minutes besides come from another hand


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """``zone`` is taken off every due time; ``clock`` is what is left: the senders' clocks beside the server's."""

    zone: timedelta
    clock: timedelta
    told_by: int  # so many messages tell it

    @property
    def is_zone(self) -> bool:
        return bool(self.zone)

    @property
    def is_clock(self) -> bool:
        return abs(self.clock) >= _NOTABLE


def read(connection: Connection, table: Address) -> ClockSkew | None:
    """Of one delayed table, as its soonest messages tell; None where none of them does, or it cannot be read."""
    return of_all(connection, [table])[table]


def of_all(connection: Connection, tables: Sequence[Address]) -> dict[Address, ClockSkew | None]:
    """As ``read``, of each."""
    due_and_headers = connection.dialect.browse.due_and_headers
    answers = batch_query.ask(connection, [(due_and_headers(table=table, most=LOOKED_AT), None) for table in tables])
    # whoever asks for messages of one that cannot be read is told why
    told = (None if isinstance(rows, DatabaseError) else of((row.due, row.headers) for row in rows) for rows in answers)
    return dict(zip(tables, told, strict=True))


def zones(
    connection: Connection, tables: Iterable[QueueTable], known: Mapping[Address, timedelta]
) -> dict[Address, timedelta]:
    """Of each delayed table, for a caller that asks again and again: what nothing tells now stays as it was known."""
    delayed = [table.address for table in tables if table.kind is TableKind.DELAYED and not table.why_unread]
    told = of_all(connection, delayed)
    return {each: skew.zone if skew else known.get(each, timedelta()) for each, skew in told.items()}


def of(rows: Iterable[tuple[datetime, str]]) -> ClockSkew | None:
    """From due times and headers as they were stored: what more than half of those that tell agree on."""
    found = _offs(rows)
    zones = [_zone(off) for off in found]
    zone = max(zones, key=zones.count, default=timedelta())
    clocks = [(off - zone).total_seconds() for off, each in zip(found, zones, strict=True) if each == zone]
    return ClockSkew(zone, timedelta(seconds=median(clocks)), len(clocks)) if len(clocks) * 2 > len(found) else None


def _offs(rows: Iterable[tuple[datetime, str]]) -> list[timedelta]:
    """What each row tells. Rows of one due time, meant for several, were set by hand together: they tell none."""
    meant: dict[datetime, list[datetime]] = defaultdict(list)
    for due, headers in rows:
        if (at := _meant(headers)) is not None:
            meant[due].append(at)
    as_stored = ((due, at) for due, all_of_it in meant.items() if len(set(all_of_it)) == 1 for at in all_of_it)
    return [due - at for due, at in as_stored if _is_clock_or_zone(due - at)]


def _zone(off: timedelta) -> timedelta:
    return round(off / _QUARTER) * _QUARTER


def _is_clock_or_zone(off: timedelta) -> bool:
    zone = _zone(off)
    return abs(off) <= _WIDEST and (not zone or abs(off - zone) <= _CLOCK_BESIDE_ZONE)


def _meant(text: str) -> datetime | None:
    """A header of an earlier delay tells nothing of this one: a retry keeps the first (wire sheet 7)."""
    try:
        headers: Headers = wire.parse(text)
    except HeadersUnreadable:
        return None
    at = parse_time(headers.get(wire.DELIVER_AT))
    retried = parse_time(headers.get(wire.RETRIES_TIMESTAMP))
    return None if at is None or (retried and at <= retried) else at

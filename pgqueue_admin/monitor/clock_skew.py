"""Skew of a delayed table's due times: the writers' session time zone and clocks.

An endpoint passes a UTC wall clock to a column with a zone, which its session's zone then interprets (wire sheet 3): a
minute from New York lands five hours and a minute away. Our sessions are in UTC; the messages' headers reveal the
difference.
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

LOOKED_AT = 20  # soonest messages per table
_QUARTER = timedelta(minutes=15)  # zones differ by whole quarters of an hour
_WIDEST = timedelta(hours=14, minutes=7)  # more is no zone: the due time was set by hand
_NOTABLE = timedelta(seconds=5)
_CLOCK_BESIDE_ZONE = timedelta(minutes=1)  # beyond a zone's whole quarters, more than this was set by hand


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """``zone``: to subtract from every due time; ``clock``: the rest, the senders' clocks against the server's."""

    zone: timedelta
    clock: timedelta
    told_by: int  # messages that agree on it

    @property
    def is_zone(self) -> bool:
        return bool(self.zone)

    @property
    def is_clock(self) -> bool:
        return abs(self.clock) >= _NOTABLE


def read(connection: Connection, table: Address) -> ClockSkew | None:
    """For one delayed table, from its soonest messages; None if none shows it, or the table is unreadable."""
    return of_all(connection, [table])[table]


def of_all(connection: Connection, tables: Sequence[Address]) -> dict[Address, ClockSkew | None]:
    """As ``read``, for each."""
    due_and_headers = connection.dialect.browse.due_and_headers
    answers = batch_query.ask(connection, [(due_and_headers(table=table, most=LOOKED_AT), None) for table in tables])
    # unreadable tables are reported where their messages are read
    told = (None if isinstance(rows, DatabaseError) else of((row.due, row.headers) for row in rows) for rows in answers)
    return dict(zip(tables, told, strict=True))


def zones(
    connection: Connection, tables: Iterable[QueueTable], known: Mapping[Address, timedelta]
) -> dict[Address, timedelta]:
    """Zone skews of all delayed tables, for repeated calls: without new evidence the known value stays."""
    delayed = [table.address for table in tables if table.kind is TableKind.DELAYED and not table.why_unread]
    told = of_all(connection, delayed)
    return {each: skew.zone if skew else known.get(each, timedelta()) for each, skew in told.items()}


def of(rows: Iterable[tuple[datetime, str]]) -> ClockSkew | None:
    """From stored due times and headers: the skew that more than half of the telling messages agree on."""
    found = _offs(rows)
    zones = [_zone(off) for off in found]
    zone = max(zones, key=zones.count, default=timedelta())
    clocks = [(off - zone).total_seconds() for off, each in zip(found, zones, strict=True) if each == zone]
    return ClockSkew(zone, timedelta(seconds=median(clocks)), len(clocks)) if len(clocks) * 2 > len(found) else None


def _offs(rows: Iterable[tuple[datetime, str]]) -> list[timedelta]:
    """The offset of each row. Rows with one due time but different intended times were set by hand, and are ignored."""
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
    """The intended due time. A header of an earlier delay does not count: a retry keeps the first (wire sheet 7)."""
    try:
        headers: Headers = wire.parse(text)
    except HeadersUnreadable:
        return None
    at = parse_time(headers.get(wire.DELIVER_AT))
    retried = parse_time(headers.get(wire.RETRIES_TIMESTAMP))
    return None if at is None or (retried and at <= retried) else at

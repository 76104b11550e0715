"""Reads delayed messages page by page, soonest first. Locks nothing, removes nothing, never counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.monitor import batch_query
from pgqueue_admin.monitor.message import DelayedMessage
from pgqueue_admin.monitor.queue_table import QueueTable

LATE = timedelta(seconds=90)  # external movers poll at least once a minute (wire sheet 3)

EDGES = (0, 60, 600, 3_600, 21_600, 86_400, 604_800)  # seconds from now: boundaries of the spread's ranges
MOST = 10_000  # per table; more than the chart needs, and read from the index

Cursor = tuple[str, str]  # due as the database writes it, and the row's id
FIRST: Cursor = ("-infinity", str(UUID(int=0)))


@dataclass(frozen=True)
class DelayedPage:
    """Messages, soonest first, and cursors of the adjacent pages (None: there is none)."""

    messages: list[DelayedMessage]
    previous: Cursor | None = None
    next: Cursor | None = None
    looked_at: int | None = None  # for a search: rows scanned


def page(
    connection: Connection,
    table: QueueTable,
    *,
    after: Cursor | None = None,
    before: Cursor | None = None,
    limit: int = 50,
) -> DelayedPage:
    """One page, after ``after`` or before ``before``."""
    upwards = before is None
    due, row_id = (after or FIRST) if before is None else before
    name = "delayed_upwards" if upwards else "delayed_downwards"
    rows = _rows(connection, table, name, {"due": due, "id": row_id, "limit": limit + 1})
    shown, more = rows[:limit], len(rows) > limit
    if not shown:
        return DelayedPage([])
    if not upwards:  # going back: the page we come from is the next page
        shown.reverse()
    has_previous, has_next = (after is not None, more) if upwards else (more, True)
    return DelayedPage(shown, _key(shown[0]) if has_previous else None, _key(shown[-1]) if has_next else None)


def message(connection: Connection, table: QueueTable, row_id: UUID | str) -> DelayedMessage | None:
    """One message by its row id; None if it is gone."""
    found = _rows(connection, table, "delayed_message", {"id": row_id})
    return found[0] if found else None


def spread(connection: Connection, table: Address, most: int = MOST, zone: timedelta = timedelta()) -> list[int]:
    """Count the soonest messages before, between and after the EDGES; never-due ones are left out.

    ``zone``: the due times' skew, as from ``clock_skew.read``.
    """
    return spreads(connection, {table: zone}, most)[0]


def spreads(connection: Connection, zones: Mapping[Address, timedelta], most: int = MOST) -> list[list[int]]:
    """As ``spread``, for each table with its zone. Raises DatabaseError if one is unreadable."""
    about = {"edges": list(map(float, EDGES)), "most": most}
    due_spread = connection.dialect.browse.due_spread
    asked = [(due_spread(table=table), {**about, "zone": zone}) for table, zone in zones.items()]
    return [_by_stretch(rows) for rows in batch_query.ask(connection, asked)]


def _by_stretch(rows: batch_query.Answer) -> list[int]:
    if isinstance(rows, DatabaseError):
        raise rows
    by_stretch = {row.stretch: row.messages for row in rows}
    return [by_stretch.get(stretch, 0) for stretch in range(len(EDGES) + 1)]


def unmoved_since(overdue: int | None, soonest: datetime | None, now: datetime) -> datetime | None:
    """Since when due messages seem not to be moved: the first due time, if older than LATE."""
    return soonest if overdue and soonest and now - soonest > LATE else None


def _key(message: DelayedMessage) -> Cursor:
    return message.due_text, str(message.id)


def _rows(connection: Connection, table: QueueTable, name: str, values: dict[str, Any]) -> list[DelayedMessage]:
    browse = connection.dialect.browse
    query = getattr(browse, name)(table=table.address, columns=browse.delayed_columns)
    return [DelayedMessage.from_row(row) for row in connection.all(query, values)]

"""Reads waiting messages page by page (C3). Locks nothing, removes nothing, and never counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.monitor import batch_query
from pgqueue_admin.monitor.batch_query import within
from pgqueue_admin.monitor.depth import BOTTOM
from pgqueue_admin.monitor.message import WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable

TOP = 2**63 - 1
REACH = 20_000  # rows that one page of "only expired" scans

Place = int | tuple[int, str]  # a seq; with a row's id if seq is not unique
Cursor = dict[str, Place]  # {"after": place} or {"before": place}
_HIGHEST = str(UUID(int=2**128 - 1))


@dataclass(frozen=True)
class MessagePage:
    """Messages in the requested order, and cursors of the adjacent pages (None: there is none)."""

    messages: list[WaitingMessage]
    previous: Cursor | None = None
    next: Cursor | None = None
    looked_at: int | None = None  # for a filtered page: rows scanned


def page(
    connection: Connection,
    table: QueueTable,
    *,
    after: Place | None = None,
    before: Place | None = None,
    order: Literal["head", "newest"] = "head",
    limit: int = 50,
    only_expired: bool = False,
    low_water: int | None = None,
    now: datetime | None = None,
) -> MessagePage:
    """One page. ``low_water`` lets a first page skip dead rows before the head."""
    start = _start(after, low_water)
    if only_expired:
        return _expired(connection, table, start if isinstance(start, int) else start[0], limit, now)
    upwards = before is None if order == "head" else after is not None
    if upwards:
        rows = _upwards(connection, table, start, limit + 1, now)
    else:
        rows = _downwards(connection, table, before, limit + 1, now)
    shown, more = rows[:limit], len(rows) > limit
    if upwards != (order == "head"):  # going back: the page we come from is the next page
        return _page(table, shown[::-1], order, more, True)
    return _page(table, shown, order, (after if order == "head" else before) is not None, more)


def message(
    connection: Connection, table: QueueTable, row_id: UUID | str, now: datetime | None = None
) -> WaitingMessage | None:
    """One message by its row id; None if it is gone."""
    found = _rows(connection, table, "message", {"id": row_id, "now": now})
    return found[0] if found else None


def is_there(connection: Connection, address: Address, row_id: str) -> bool:
    """Whether a row of this id is in the table. Raises DatabaseError."""
    return bool(connection.value(connection.dialect.browse.there(table=address), {"id": row_id}))


def are_there(connection: Connection, rows: Sequence[tuple[Address, UUID]]) -> Iterator[bool | None]:
    """As ``is_there``, for each row; None if its table is unreadable. Raises DatabaseDown."""
    asked = [(connection.dialect.browse.there(table=address), {"id": row_id}) for address, row_id in rows]
    for found in batch_query.ask(connection, asked):
        yield None if isinstance(found, DatabaseError) else bool(found[0][0])


def messages(
    connection: Connection, tables: Sequence[QueueTable], row_id: UUID
) -> Iterator[WaitingMessage | DatabaseError | None]:
    """As ``message``, for each table, or the error. Raises DatabaseDown."""
    browse, values = connection.dialect.browse, {"id": row_id, "now": None}
    asked = [(browse.message(table=table.address, columns=browse.columns), values) for table in tables]
    for rows in batch_query.ask(connection, asked):
        if isinstance(rows, DatabaseError):
            yield rows
        else:
            yield WaitingMessage.from_row(rows[0]) if rows else None


def head_and_tail(
    connection: Connection,
    table: QueueTable,
    *,
    head: int = 4,
    tail: int = 2,
    low_water: int | None = None,
    timeout: float = 1.0,
    now: datetime | None = None,
) -> tuple[list[WaitingMessage], list[WaitingMessage]]:
    """The first and the last messages, head first, without duplicates. Raises TimedOut after ``timeout`` seconds."""
    with within(connection, timeout):
        first = _upwards(connection, table, _start(None, low_water), head, now)
        last = _downwards(connection, table, None, tail, now)
    seen = {(each.seq, each.id) for each in first}
    return first, [each for each in reversed(last) if (each.seq, each.id) not in seen]


def _upwards(
    connection: Connection, table: QueueTable, after: Place, limit: int, now: datetime | None
) -> list[WaitingMessage]:
    seq, row_id = after if isinstance(after, tuple) else (after, _HIGHEST)
    name = "upwards" if table.seq_unique else "upwards_tied"
    return _rows(connection, table, name, {"after": seq, "id": row_id, "limit": limit, "now": now})


def _downwards(
    connection: Connection, table: QueueTable, before: Place | None, limit: int, now: datetime | None
) -> list[WaitingMessage]:
    seq, row_id = before if isinstance(before, tuple) else (TOP + 1 if before is None else before, None)
    if table.seq_unique or row_id is None:
        seq, row_id = seq - 1, _HIGHEST
    name = "downwards" if table.seq_unique else "downwards_tied"
    return _rows(connection, table, name, {"last": seq, "id": row_id, "limit": limit, "now": now})


def _start(after: Place | None, low_water: int | None) -> Place:
    if after is not None:
        return after
    return BOTTOM if low_water is None else low_water - 1


def _expired(connection: Connection, table: QueueTable, after: int, limit: int, now: datetime | None) -> MessagePage:
    """Forwards only. A page ends at its limit or after REACH scanned rows, and the next continues there."""
    statement = connection.dialect.browse.expired(table=table.address, reach=REACH)
    found = connection.one(statement, {"after": after, "now": now})
    assert found is not None
    seqs = list(found.seqs or [])
    shown = _rows(connection, table, "listed", {"seqs": seqs[:limit], "now": now}) if seqs else []
    onward = seqs[limit - 1] if len(seqs) > limit else found.looked_to if found.looked_at == REACH else None
    return MessagePage(shown, None, None if onward is None else {"after": onward}, found.looked_at)


def _rows(connection: Connection, table: QueueTable, name: str, values: dict[str, Any]) -> list[WaitingMessage]:
    browse = connection.dialect.browse
    query = getattr(browse, name)(table=table.address, columns=browse.columns)
    return [WaitingMessage.from_row(row) for row in connection.all(query, values)]


def _page(
    table: QueueTable, shown: list[WaitingMessage], order: str, has_previous: bool, has_next: bool
) -> MessagePage:
    if not shown:
        return MessagePage([])
    forward, back = ("after", "before") if order == "head" else ("before", "after")
    return MessagePage(
        shown,
        {back: _place(table, shown[0])} if has_previous else None,
        {forward: _place(table, shown[-1])} if has_next else None,
    )


def _place(table: QueueTable, message: WaitingMessage) -> Place:
    return message.seq if table.seq_unique else (message.seq, str(message.id))

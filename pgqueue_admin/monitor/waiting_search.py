"""Searches waiting messages in batches, within limits of rows and time. Locks nothing."""

from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.dialects.statements import Statement
from pgqueue_admin.monitor import lease_messages
from pgqueue_admin.monitor.browse import TOP
from pgqueue_admin.monitor.delayed import FIRST as SOONEST
from pgqueue_admin.monitor.delayed import Cursor
from pgqueue_admin.monitor.depth import BOTTOM
from pgqueue_admin.monitor.message import DelayedMessage, WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable

ROWS = 50_000  # per search
SECONDS = 2.0  # per search; a statement may exceed it, up to its own limit
FIRST, LARGEST = 500, 10_000  # rows per statement: few at first, because their size is unknown


class Condition(NamedTuple):
    """A condition on archive row ``a``, as in ``archive_search.sql``."""

    matches: Statement
    params: dict[str, Any]


class Found(NamedTuple):
    """``onward``: where the next search continues; None: the table was searched to its end."""

    messages: list[Any]
    looked_at: int
    onward: Any


def waiting(
    connection: Connection,
    table: QueueTable,
    asked: Condition,
    start: int | None,
    limit: int,
    *,
    newest_first: bool = False,
    only_expired: bool = False,
) -> Found:
    """Search after seq ``start``. Raises TimedOut if not even the first rows were read."""
    sql: Any = getattr(connection.dialect, "waiting_search")  # noqa: B009 - only dialects with ``searches_waiting``
    place, end, step = (sql.down, sql.lowest, -1) if newest_first else (sql.up, sql.highest, 1)
    statement = sql.look_through(table=table.address, place=place, end=end, waiting=sql.waiting, matches=asked.matches)

    def look(at: int, rows: int) -> Any:
        return connection.one(
            statement, {**asked.params, "only_expired": only_expired, "seq": _within(at + step), "rows": rows}
        )

    first = TOP + 1 if newest_first else BOTTOM - 1
    seqs, looked_at, onward = _look(look, lambda row: row.looked_to, first if start is None else start, limit)
    seqs = sorted(seqs, reverse=newest_first)
    shown = seqs[:limit]
    browse = connection.dialect.browse
    listed = browse.listed(table=table.address, columns=browse.columns)
    messages = [WaitingMessage.from_row(row) for row in connection.all(listed, {"seqs": shown, "now": None})]
    return Found(messages[::-1] if newest_first else messages, looked_at, shown[-1] if len(seqs) > limit else onward)


def _within(seq: int) -> int:
    return min(max(seq, BOTTOM), TOP)


def delayed(connection: Connection, table: QueueTable, asked: Condition, start: Cursor | None, limit: int) -> Found:
    """Likewise, soonest first."""
    sql: Any = getattr(connection.dialect, "waiting_search")  # noqa: B009 - as above
    statement = sql.look_through_delayed(table=table.address, waiting=sql.waiting, matches=asked.matches)

    def look(at: Cursor, rows: int) -> Any:
        return connection.one(statement, {**asked.params, "due": at[0], "id": at[1], "rows": rows})

    ids, looked_at, onward = _look(look, lambda row: (row.looked_to, row.looked_to_id), start or SOONEST, limit)
    browse = connection.dialect.browse
    listed = browse.delayed_listed(table=table.address, columns=browse.delayed_columns)
    rows = connection.all(listed, {"ids": ids}) if ids else []
    messages = [DelayedMessage.from_row(row) for row in rows]
    if len(messages) > limit:
        onward = messages[limit - 1].due_text, str(messages[limit - 1].id)
    return Found(messages[:limit], looked_at, onward)


class NumberRange(NamedTuple):
    """From ``low`` to ``high``, both inclusive."""

    low: int
    high: int


EVERY_NUMBER = NumberRange(BOTTOM, TOP)


def leases(
    connection: Connection,
    table: QueueTable,
    asked: Condition,
    within: NumberRange,
    limit: int,
    *,
    newest_first: bool = False,
) -> Found:
    """Messages of a lease queue in this range, by number. ``onward``: the number to continue after."""
    sql: Any = getattr(connection.dialect, "waiting_search")  # noqa: B009 - as above
    place, end = (sql.leases_down, sql.lowest) if newest_first else (sql.leases_up, sql.highest)
    parts = {"table": table.address, "place": place, "end": end, "leases": sql.leases, "matches": asked.matches}
    statement = sql.look_through_leases(**parts, **_lease_parts(connection, table))

    def look(at: int, rows: int) -> Any:
        ends = within._replace(high=_within(at - 1)) if newest_first else within._replace(low=_within(at + 1))
        return connection.one(statement, {**asked.params, **ends._asdict(), "rows": rows})

    first = within.high + 1 if newest_first else within.low - 1
    numbers, looked_at, onward = _look(look, lambda row: row.looked_to, first, limit)
    numbers = sorted(numbers, reverse=newest_first)
    shown = numbers[:limit]
    messages = lease_messages.listed(connection, table, shown) if shown else []
    onward = shown[-1] if len(numbers) > limit else onward
    return Found(messages[::-1] if newest_first else messages, looked_at, onward)


def _lease_parts(connection: Connection, table: QueueTable) -> dict[str, Any]:
    """SQL parts for columns of our tables, or substitutes for the original's."""
    browse, sql, is_ours = connection.dialect.browse, getattr(connection.dialect, "waiting_search"), table.has_attempts  # noqa: B009
    return {
        "kind": browse.lease_kind,
        "state": browse.lease_state,
        "is_later": browse.lease_is_later if is_ours else browse.lease_never_later,
        "attempts": sql.lease_attempts if is_ours else sql.lease_no_attempts,
        "holder": lease_messages.holder(browse, table) if is_ours else browse.lease_no_holder,
    }


def _look(
    look: Callable[[Any, int], Any], end_of: Callable[[Any], Any], at: Any, limit: int
) -> tuple[list[Any], int, Any]:
    """Search until more match than are shown, or the limit of rows or time is reached."""
    found, looked_at, size, ends_at = list[Any](), 0, FIRST, monotonic() + SECONDS
    while looked_at < ROWS and len(found) <= limit and (monotonic() < ends_at or not looked_at):
        most = min(size, ROWS - looked_at)
        try:
            piece = look(at, most)
        except TimedOut:
            if not looked_at:
                raise
            break
        found += piece.found
        looked_at, size = looked_at + piece.read, min(2 * size, LARGEST)
        if piece.read < most:
            return found, looked_at, None
        at = end_of(piece)
    return found, looked_at, at

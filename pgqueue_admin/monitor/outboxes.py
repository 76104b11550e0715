"""Outbox tables from outside: which there are, what waits, how far clean-up has come. Every look is bounded."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError

MOST_TABLES = 200
COUNTED_TO = 1_000
PAGE = 1_000
SHOWN_OPERATIONS = 2_000_000  # characters of one record
INDEXED = ("Dispatched", "DispatchedAt")
_CALLS = "to plan a look would run {calls} of somebody's as the console's role"


@dataclass(frozen=True, slots=True)
class OutboxTable:
    """``rows``: as the planner knows it; None: it has not looked. ``says_when``: a record tells since when it waits.

    ``why_unread``: why nobody may look into it, or nothing.
    """

    address: Address
    rows: int | None
    says_when: bool
    missing_indexes: tuple[str, ...]
    why_unread: str


@dataclass(frozen=True, slots=True)
class OutboxFigures:
    """``pending`` is counted to COUNTED_TO + 1. ``oldest_pending``, ``oldest_kept``: None where nothing is, or says.

    ``dispatched``: that are kept; ``how``: counted, capped, an estimate, or unknown. ``unread``: why nothing of this is
    known.
    """

    table: OutboxTable
    pending: int = 0
    oldest_pending: datetime | None = None
    oldest_kept: datetime | None = None
    unread: str = ""
    dispatched: int | None = None
    how: str = "unknown"

    @property
    def kept_is_known(self) -> bool:
        """What was dispatched is looked for by its index alone."""
        return not self.unread and "DispatchedAt" not in self.table.missing_indexes


class PendingRecord(NamedTuple):
    """``operations``: how many messages it is to send; None: what it holds is no list."""

    id: str
    created_at: datetime | None
    size: int
    operations: int | None


class DispatchedRecord(NamedTuple):
    id: str
    dispatched_at: datetime | None


class ShownRecord(NamedTuple):
    """``size``: of its operations in bytes; they are cut at SHOWN_OPERATIONS characters."""

    id: str
    dispatched: bool
    dispatched_at: datetime | None
    version: str | None
    created_at: datetime | None
    size: int
    operations: str


def now(connection: Connection) -> datetime:
    """By the server's clock, which wrote what is compared with it. Raises DatabaseError."""
    at: datetime = connection.value(connection.dialect.monitor.server_time())
    return _aware(at)


def _aware(at: Any) -> Any:
    """Some drivers do not say that it is UTC, which every session is in."""
    return at.replace(tzinfo=UTC) if at and at.tzinfo is None else at


def find(connection: Connection, schemas: list[str]) -> list[OutboxTable]:
    """``schemas``: those that may be looked at; none: all. Raises DatabaseError."""
    dialect = connection.dialect
    if not dialect.lists_roles:
        return [_listed(dialect, row) for row in connection.all(dialect.outbox.tables(most=MOST_TABLES))]
    asked = dialect.outbox.tables(most=MOST_TABLES), {"schemas": schemas}
    rows, calls = connection.batch([asked, (dialect.monitor.calls(), None)])
    by_oid = {row.oid: row.name for row in calls}
    return [_table(dialect, row, by_oid.get(row.oid, "")) for row in rows]


def _listed(dialect: Dialect, row: Any) -> OutboxTable:
    """Where a catalog lists only what the role may read, and a look runs nobody's code."""
    missing = tuple(column for column in INDEXED if column not in (row.indexed or "").split(","))
    return OutboxTable(dialect.address(row.schema, row.table), row.rows, bool(row.says_when), missing, "")


def _table(dialect: Dialect, row: Any, calls: str) -> OutboxTable:
    missing = tuple(column for column in INDEXED if column not in row.indexed)
    why_unread = _CALLS.format(calls=calls) if calls else "" if row.may_read else "SELECT on it is not granted"
    return OutboxTable(dialect.address(row.schema, row.table), row.rows, row.says_when, missing, why_unread)


def measure(connection: Connection, table: OutboxTable) -> OutboxFigures:
    """Of one table; what cannot be read is said. Raises DatabaseDown."""
    if table.why_unread:
        return OutboxFigures(table, unread=table.why_unread)
    if "Dispatched" in table.missing_indexes:
        return OutboxFigures(table, unread="without an index on Dispatched each look would read all of it")
    try:
        return _measured(connection, table)
    except DatabaseDown:
        raise
    except DatabaseError as error:
        return OutboxFigures(table, unread=str(error))


def _measured(connection: Connection, table: OutboxTable) -> OutboxFigures:
    sql, at = connection.dialect.outbox, table.address
    pending = connection.value(sql.count_pending(table=at, most=COUNTED_TO + 1))
    oldest = (
        connection.value(sql.oldest_pending(table=at, most=COUNTED_TO + 1)) if pending and table.says_when else None
    )
    has_index = "DispatchedAt" not in table.missing_indexes
    kept = connection.value(sql.oldest_kept(table=at)) if has_index else None
    counted = connection.value(sql.count_dispatched(table=at, most=COUNTED_TO + 1)) if has_index else None
    dispatched, how = _dispatched(table, pending, counted)
    return OutboxFigures(table, pending, _aware(oldest), _aware(kept), dispatched=dispatched, how=how)


def _dispatched(table: OutboxTable, pending: int, counted: int | None) -> tuple[int | None, str]:
    """Beyond what is counted as the planner has it, if it has looked since there were so many."""
    if counted is not None and counted <= COUNTED_TO:
        return counted, "counted"
    estimate = max(0, table.rows - pending) if table.rows is not None else None
    if counted is None:
        return estimate, "unknown" if estimate is None else "estimate"
    return (COUNTED_TO, "capped") if estimate is None or estimate < counted else (estimate, "estimate")


def pending(connection: Connection, table: OutboxTable, most: int, after: str = "") -> list[PendingRecord]:
    """By message id. Raises DatabaseError."""
    created_at = _created_at(connection, table)
    query = connection.dialect.outbox.list_pending(table=table.address, created_at=created_at, most=most)
    rows = connection.all(query, {"after": after})
    return [PendingRecord(row.id, _aware(row.created_at), row.size, row.operations) for row in rows]


def dispatched(connection: Connection, table: OutboxTable, most: int, after: str = "") -> list[DispatchedRecord]:
    """By message id. Raises DatabaseError."""
    rows = connection.all(connection.dialect.outbox.list_dispatched(table=table.address, most=most), {"after": after})
    return [DispatchedRecord(*row) for row in rows]


def pending_ids(connection: Connection, table: Address, most: int) -> list[str]:
    """The first so many by message id, read a page at a time; nothing is locked. Raises DatabaseError."""
    found, query = list[str](), connection.dialect.outbox.pending_ids(table=table, most=PAGE)
    while len(found) < most:
        page = [row.id for row in connection.all(query, {"after": found[-1] if found else ""})]
        found += page
        if len(page) < PAGE:
            break
    return found


def still_pending(connection: Connection, table: Address, ids: Collection[str]) -> set[str]:
    """Which of these wait; nothing is locked. Raises DatabaseError."""
    query = connection.dialect.outbox.still_pending(table=table)
    return {row.id for row in connection.all(query, {"ids": list(ids)})} if ids else set()


def record(connection: Connection, table: OutboxTable, message_id: str) -> ShownRecord | None:
    """Raises DatabaseError."""
    created_at = _created_at(connection, table)
    query = connection.dialect.outbox.record(table=table.address, created_at=created_at, most=SHOWN_OPERATIONS)
    row: Any = connection.one(query, {"id": message_id})
    if row is None:
        return None
    times = {"dispatched_at": _aware(row.dispatched_at), "created_at": _aware(row.created_at)}
    return ShownRecord(*row)._replace(dispatched=bool(row.dispatched), **times)


def _created_at(connection: Connection, table: OutboxTable) -> Any:
    sql = connection.dialect.outbox
    return sql.created_at if table.says_when else sql.unknown_at

"""Outbox tables from outside: which exist, what is pending, how far clean-up has come. All reads are bounded."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError

MOST_TABLES = 200
COUNTED_TO = 1_000
PAGE = 1_000
SHOWN_OPERATIONS = 2_000_000  # characters per record
INDEXED = ("Dispatched", "DispatchedAt")
_CALLS = "to plan a look would run {calls} of somebody's as the console's role"


@dataclass(frozen=True, slots=True)
class OutboxTable:
    """``rows``: the planner's estimate; None: not analysed. ``says_when``: records store since when they wait.

    ``why_unread``: why it may not be read, or empty.
    """

    address: Address
    rows: int | None
    says_when: bool
    missing_indexes: tuple[str, ...]
    why_unread: str


@dataclass(frozen=True, slots=True)
class OutboxFigures:
    """``pending`` is counted up to COUNTED_TO + 1. ``oldest_pending``, ``oldest_kept``: None if there is none, or
    unknown.

    ``dispatched``: records still kept; ``how``: counted, capped, estimate or unknown. ``unread``: why nothing of this
    is known.
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
        """Dispatched records are read only by their index."""
        return not self.unread and "DispatchedAt" not in self.table.missing_indexes


class PendingRecord(NamedTuple):
    """``operations``: number of messages to send; None: its content is no list."""

    id: str
    created_at: datetime | None
    size: int
    operations: int | None


class DispatchedRecord(NamedTuple):
    id: str
    dispatched_at: datetime | None


class ShownRecord(NamedTuple):
    """``size``: bytes of its operations, which are cut at SHOWN_OPERATIONS characters."""

    id: str
    dispatched: bool
    dispatched_at: datetime | None
    version: str | None
    created_at: datetime | None
    size: int
    operations: str


def now(connection: Connection) -> datetime:
    """By the server's clock, which also wrote the times compared with it. Raises DatabaseError."""
    at: datetime = connection.value(connection.dialect.monitor.server_time())
    return _aware(at)


def _aware(at: Any) -> Any:
    """Some drivers omit the zone; every session is in UTC."""
    return at.replace(tzinfo=UTC) if at and at.tzinfo is None else at


def find(connection: Connection, schemas: list[str]) -> list[OutboxTable]:
    """``schemas``: those that may be read; empty: all. Raises DatabaseError."""
    dialect = connection.dialect
    if not dialect.lists_roles:
        return [_listed(dialect, row) for row in connection.all(dialect.outbox.tables(most=MOST_TABLES))]
    asked = dialect.outbox.tables(most=MOST_TABLES), {"schemas": schemas}
    rows, calls = connection.batch([asked, (dialect.monitor.calls(), None)])
    by_oid = {row.oid: row.name for row in calls}
    return [_table(dialect, row, by_oid.get(row.oid, "")) for row in rows]


def _listed(dialect: Dialect, row: Any) -> OutboxTable:
    """For catalogs that list only what the role may read, where planning runs no foreign code."""
    missing = tuple(column for column in INDEXED if column not in (row.indexed or "").split(","))
    return OutboxTable(dialect.address(row.schema, row.table), row.rows, bool(row.says_when), missing, "")


def _table(dialect: Dialect, row: Any, calls: str) -> OutboxTable:
    missing = tuple(column for column in INDEXED if column not in row.indexed)
    why_unread = _CALLS.format(calls=calls) if calls else "" if row.may_read else "SELECT on it is not granted"
    return OutboxTable(dialect.address(row.schema, row.table), row.rows, row.says_when, missing, why_unread)


def measure(connection: Connection, table: OutboxTable) -> OutboxFigures:
    """Figures of one table; read errors go into ``unread``. Raises DatabaseDown."""
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
    """Beyond the counted limit, the planner's estimate, if it is recent enough to know of so many."""
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
    """The first ``most`` by message id, read in pages without locks. Raises DatabaseError."""
    found, query = list[str](), connection.dialect.outbox.pending_ids(table=table, most=PAGE)
    while len(found) < most:
        page = [row.id for row in connection.all(query, {"after": found[-1] if found else ""})]
        found += page
        if len(page) < PAGE:
            break
    return found


def still_pending(connection: Connection, table: Address, ids: Collection[str]) -> set[str]:
    """Which of these are pending; takes no locks. Raises DatabaseError."""
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

"""A discovered table and its kind of queue."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pgqueue_admin.dialects import Address, Dialect

INTEGER_END = 2**31 - 1
_HIDDEN = (
    "Row-level security hides rows of it from the console's role, so nothing can be counted: a policy is code of the"
    " table's owner, and looking runs none. BYPASSRLS for the role shows it, or row-level security switched off."
)
_POLICY = (
    "A security policy hides rows of it, so nothing can be counted: it runs a function of somebody's at each look, and"
    " looking runs none. It is looked into once the policy is switched off."
)
_CALLS = (
    "It is not looked into: to plan that would run {calls} as the console's role. An index, statistics, a partition key"
    " or a part's check of it calls that function, which neither a superuser nor the console's role owns. Ask its owner"
    " to take it out there, or have a superuser own it."
)
_READABLE = {
    "id": {"uuid"},
    "expires": {"timestamp without time zone"},
    "headers": {"text", "character varying"},
    "body": {"bytea"},
    "seq": {"smallint", "integer", "bigint"},
}


# columns that our workers add to the original's (docs/reference/lease-queue.md)
_ATTEMPTS = {
    "attempts": "integer",
    "available_at": "timestamp with time zone",
    "lock_token": "uuid",
    "token_expires_at": "timestamp without time zone",
}


class TableKind(StrEnum):
    INPUT = "input"
    DELAYED = "delayed"
    ERROR = "error"
    AUDIT = "audit"
    SUBSCRIPTION = "subscription"
    ARCHIVE = "archive"
    LEASE = "lease"
    PLATFORM = "platform"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class QueueTable:
    """Facts from the catalog, and conclusions from them."""

    address: Address
    kind: TableKind
    reason: str  # why this kind, for people
    columns: dict[str, str]  # name: type
    oid: int = 0
    sequence: Address | None = None  # the sequence of seq, whatever its name
    sequence_max: int | None = None
    sequence_is_readable: bool = False
    sequence_step: int | None = 1  # from one message's number to the next; None if it does not count messages
    seq_indexed: bool = False
    seq_unique: bool = True
    has_primary_key: bool = False
    size_bytes: int = 0
    hides_rows: bool = False  # from this role, by row-level security
    calls: str = ""  # another role's function that planning a query would run
    delayed: Address | None = None  # the table of its delayed messages
    delayed_of: Address | None = None  # of a delayed table: the queue its messages go to when due

    @property
    def has_bodystring(self) -> bool:
        return "bodystring" in self.columns

    @property
    def has_ids(self) -> bool:
        """Delayed messages on SQL Server have none: their number is used instead."""
        return "id" in self.columns

    @property
    def seq_type(self) -> str:
        return self.columns.get("seq", "")

    @property
    def seq_end(self) -> int | None:
        """The largest possible seq: the column's or the sequence's limit, whichever is lower."""
        numbers = self.columns.get("id", "") if self.kind is TableKind.LEASE else self.seq_type
        ends = [INTEGER_END] if numbers == "integer" else []
        return min([*ends, self.sequence_max]) if self.sequence_max is not None else None

    @property
    def is_counted(self) -> bool:
        """Whether it has all columns of a queue, of any type: then its rows can be counted."""
        compared = [self.columns.get(name, "") for name in ("seq", "expires")]
        return self.columns.keys() >= _READABLE.keys() and not any("user-defined" in each for each in compared)

    @property
    def is_measured(self) -> bool:
        return self.is_counted or self.kind in {TableKind.DELAYED, TableKind.LEASE}

    @property
    def has_attempts(self) -> bool:
        """For a lease queue: whether it has our columns besides the original's."""
        return _ATTEMPTS.items() <= self.columns.items()

    @property
    def why_unread(self) -> str:
        """Why it may not be read, or empty: reading must not run other roles' code."""
        if self.hides_rows:
            return _POLICY if "rowversion" in self.columns else _HIDDEN
        return _CALLS.format(calls=self.calls) if self.calls else ""

    @property
    def descends(self) -> bool:
        """Whether the newest message comes first."""
        return (self.sequence_step or 0) < 0

    @property
    def has_messages(self) -> bool:
        """Whether rows can be read as transport messages, head first."""
        return all(self.columns.get(name) in types for name, types in _READABLE.items())

    @property
    def has_bodies(self) -> bool:
        return self.has_messages or self.kind is TableKind.DELAYED

    @classmethod
    def from_catalog(cls, dialect: Dialect, row: Any, kind: TableKind, reason: str, calls: str = "") -> "QueueTable":
        return cls(
            dialect.address(row.schema, row.table),
            kind,
            reason,
            row.columns,
            row.oid,
            dialect.address(row.sequence_schema, row.sequence) if row.sequence else None,
            row.sequence_max,
            bool(row.sequence_is_readable),
            row.sequence_step if row.sequence else 1,
            bool(row.seq_indexed),
            bool(row.seq_unique),
            row.has_primary_key,
            row.size_bytes or 0,
            row.hides_rows,
            calls,
        )

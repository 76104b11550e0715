"""Messages of the lease queue, its listeners, and how messages ended. Reading locks nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.statements import Statements
from pgqueue_admin.monitor.depth import CAP
from pgqueue_admin.monitor.queue_table import QueueTable

FIELDS = 8  # of a document, at most
ENDINGS = 10_000  # counted at most; of more, also since when

State = Literal["waiting", "locked", "over", "later"]
Order = Literal["number", "newest", "locked", "waiting"]


@dataclass(frozen=True)
class LeaseMessage:
    """``has_token``: one of our clients holds it; else an original client. ``seen``: identifies this lock, for manual
    acts.

    Seconds are from now, by its server's clock; None: never. ``attempts``, ``due_seconds``: None also in the original's
    table. ``fields``: the first scalar fields, as truncated texts.
    """

    id: int
    created_at: datetime | None
    lock_ends_at: datetime | None  # None also if beyond the calendar
    lock_seconds: float | None
    is_locked: bool
    is_over: bool
    shape: str  # object, array, string, number, boolean, null
    kind: str | None
    fields: Mapping[str, str]
    attempts: int | None
    due_seconds: float | None
    is_later: bool
    has_token: bool
    retried_from: int | None
    seen: str
    lock_holder: str | None = None  # name, machine and pid, as reported by our client
    document_size: int | None = None  # bytes

    @property
    def state(self) -> State:
        if self.is_locked:
            return "over" if self.is_over else "locked"
        return "later" if self.is_later else "waiting"

    @classmethod
    def of(cls, row: Any) -> "LeaseMessage":
        known = row._asdict()
        return cls(**{**known, "fields": known["fields"] or {}})


class Listener(NamedTuple):
    pid: int
    application: str
    user: str
    host: str
    since: datetime | None
    channel: str  # new_message, dead_message


class Listeners(NamedTuple):
    """``hidden``: sessions whose queries this role may not see."""

    sessions: list[Listener]
    hidden: int


class LocksOver(NamedTuple):
    """Expired locks that nobody has ended. ``number``: counted, or capped, as ``how`` says.

    ``since``: when the first expired; None if there is none. ``at``: now, by the same clock.
    """

    number: int
    how: str
    since: datetime | None
    at: datetime


class Endings(NamedTuple):
    """``since``: None if the whole period is counted; else when the oldest counted one ended."""

    by_result: dict[str, int]
    since: datetime | None

    @property
    def all(self) -> int:
        return sum(self.by_result.values())


class DocumentPart(NamedTuple):
    part: bytes
    size: int


def page(
    connection: Connection,
    table: QueueTable,
    order: Order,
    limit: int,
    *,
    after: int = -(2**63),
    before: int = 2**63 - 1,
) -> list[LeaseMessage]:
    """By number, also from a given number; by lock or turn only the first ones."""
    browse, values = connection.dialect.browse, {"limit": limit, "after": after, "before": before}
    if order == "number":
        query = browse.lease_by_number(**_parts(connection.dialect, table))
    elif order == "newest":
        query = browse.lease_by_number_back(**_parts(connection.dialect, table))
    elif order == "locked":
        query = browse.lease_locked(**_parts(connection.dialect, table))
    else:
        query = browse.lease_waiting(
            order=_turn(connection.dialect.monitor, table), **_parts(connection.dialect, table)
        )
    return [LeaseMessage.of(row) for row in connection.all(query, values)]


def listed(connection: Connection, table: QueueTable, numbers: Sequence[int]) -> list[LeaseMessage]:
    """The existing messages with these numbers, by number."""
    query = connection.dialect.browse.lease_listed(**_parts(connection.dialect, table))
    return [LeaseMessage.of(row) for row in connection.all(query, {"numbers": list(numbers)})]


def message(connection: Connection, table: QueueTable, number: int) -> LeaseMessage | None:
    """Including its document's size; None if it is gone."""
    row = connection.one(connection.dialect.browse.lease_message(**_parts(connection.dialect, table)), {"id": number})
    return LeaseMessage.of(row) if row else None


def document(connection: Connection, table: QueueTable, number: int, offset: int, length: int) -> DocumentPart | None:
    query = connection.dialect.browse.lease_document(table=table.address)
    row = connection.one(query, {"id": number, "offset": offset, "length": length})
    return DocumentPart(bytes(row.part), row.size) if row else None


def listeners(connection: Connection) -> Listeners:
    browse = connection.dialect.browse
    found = [Listener(*row) for row in connection.all(browse.listeners())]
    return Listeners(found, connection.value(browse.hidden_sessions()))


def locks_over(connection: Connection, table: QueueTable) -> LocksOver:
    """Also for the original's table. Raises DatabaseError."""
    (row,) = connection.all(connection.dialect.monitor.lease_over(table=table.address, cap=CAP))
    return LocksOver(row.number, "capped" if row.rows > row.number else "counted", row.since, row.at)


def endings(connection: Connection, since: timedelta = timedelta(hours=1)) -> Endings:
    """Messages that ended in that time, by result; among the newest ENDINGS."""
    rows = connection.all(connection.dialect.browse.lease_endings(cap=ENDINGS), {"since": since})
    more = any(row.more for row in rows)
    return Endings({row.result: row.number for row in rows}, min(row.oldest_at for row in rows) if more else None)


def _parts(dialect: Any, table: QueueTable) -> dict[str, Any]:
    browse = dialect.browse
    common = {
        "table": table.address,
        "columns": browse.lease_columns,
        "kind": browse.lease_kind,
        "fields": FIELDS,
    }
    if not table.has_attempts:
        return {**common, "ours": browse.lease_theirs}
    return {**common, "ours": browse.lease_ours, "seen": dialect.lease.seen, "holder": holder(browse, table)}


def holder(browse: Statements, table: QueueTable) -> Any:
    """The SQL part that selects the lock holder, if the table has it."""
    return browse.lease_holder if "lock_holder" in table.columns else browse.lease_no_holder


def _turn(monitor: Statements, table: QueueTable) -> Any:
    return monitor.lease_order if table.has_attempts else monitor.original_order

"""A queue table on SQL Server (contract: dialects.queue_store.QueueStore)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.queue_store import LOWEST, PeekResult, QueueRow, ReceivedRow
from pgqueue_admin.dialects.sqlserver.query import Query, ReadingQuery, written
from pgqueue_admin.dialects.sqlserver.recoverable_column import RecoverableColumn, RecoverableQuery
from pgqueue_admin.dialects.sqlserver.transport_table import BODY, HEADERS, ExpectedColumn, TransportTable
from pgqueue_admin.dialects.table_fault import TableFault

AT_ONCE = 500  # rows of one insert: 2,100 parameters are the server's limit, and a row has three
PURGE_BATCH = 4_000  # rows; more would make the server escalate to a table lock
COUNTED = 10_000  # maximum rows counted by a peek

_COLUMNS = (
    ExpectedColumn("Id", "uniqueidentifier", 16, "add_id", "retype_id"),
    ExpectedColumn("CorrelationId", "varchar", 255, "add_correlationid", ""),
    ExpectedColumn("ReplyToAddress", "varchar", 255, "add_replytoaddress", ""),
    ExpectedColumn("Expires", "datetime", 8, "add_expires", "retype_expires"),
    HEADERS,
    BODY,
    ExpectedColumn("RowVersion", "bigint", 8, "add_rowversion", "replace_rowversion"),
)
# Headers that senders before 7.0 wrote only into columns (wire sheet 10.1).
_CORRELATION_ID, _REPLY_TO = "NServiceBus.CorrelationId", "NServiceBus.ReplyToAddress"


class Received(NamedTuple):
    """Implements ReceivedRow."""

    id: str
    seq: int
    expired: bool
    headers: str
    body: bytes | None


class BatchReceive(ReadingQuery):
    """A receive of several rows, whose transaction's outcome can be queried later."""

    def form_for(self, session: Any) -> "BatchReceive":
        session.begins_batch()
        return self


class SQLServerQueue(TransportTable):
    """Every method but purge runs in the caller's transaction."""

    noun, kind, stops = "queue", "queue", True
    creation = ("create", "index_rowversion", "index_expires")

    def __init__(self, sql: Any, address: Address):
        super().__init__(sql, address)
        self.recoverable = RecoverableColumn(sql, address)
        self._send = self._either("send", "send_without_recoverable")
        self._peeks = {
            "count": self._sql.peek_count(table=address, most=COUNTED),
            "range": self._sql.peek_range(table=address),
        }

    def faults(self, session: Session, readable: bool = False) -> Iterator[TableFault]:
        found = self._columns(session)
        if not found:
            yield self._missing()
            return
        yield from self._column_faults(session, found, _COLUMNS)
        row_version = found.get("RowVersion")
        if row_version and row_version.type == "bigint" and not row_version.is_identity:
            said = "gives no RowVersion by itself: no send would succeed"
            yield self._change_fault(session, found, said, "RowVersion", "replace_rowversion", stops=True)
        why = "each receive would read the whole table"
        forms = self._sql.index_rowversion, self._folder.table_repair.index_rowversion_aside
        yield from self._index_fault(session, found, "RowVersion", why, *forms)
        why = "a purge of what is over reads the whole table"
        yield from self._index_fault(session, found, "Expires", why, self._sql.index_expires)
        yield from self._trigger_faults(session)
        yield from self._body_column_fault(found, readable)

    def _trigger_faults(self, session: Session) -> Iterator[TableFault]:
        for row in session.all(self._sql.triggers(catalog=self._catalog), {"table": self._name}):
            stops = bool(row.is_of_deletes)
            refused = "each receive (334)" if stops else "what comes due for it (331)"
            cure = self._folder.table_repair.disable_trigger(table=self.address, name=row.name)
            yield TableFault(
                f"{self._name} has the trigger {row.name}: the server refuses {refused}.", written(cure), stops
            )

    def insertions(self, rows: Sequence[QueueRow]) -> list[Command]:
        if len(rows) == 1:
            headers, body, ttbr_ms = rows[0]
            return [(self._send, {"id": None, "ttbr_ms": ttbr_ms, "headers": headers, "body": body})]
        return [self._insertion(rows[start : start + AT_ONCE]) for start in range(0, len(rows), AT_ONCE)]

    def _insertion(self, rows: Sequence[QueueRow]) -> Command:
        places = Query(", ".join(self._sql.row(place=place) for place in range(len(rows))))
        params: dict[str, Any] = {}
        for place, (headers, body, ttbr_ms) in enumerate(rows):
            params |= {f"ttbr_ms_{place}": ttbr_ms, f"headers_{place}": headers, f"body_{place}": body}
        return self._either("send_many", "send_many_without_recoverable", rows=places), params

    def _either(self, with_it: str, without: str, **identifiers: Any) -> RecoverableQuery:
        forms = [getattr(self._sql, name)(table=self.address, **identifiers) for name in (with_it, without)]
        return RecoverableQuery.of(self.recoverable, *forms)

    def load(self, session: Session, rows: Iterable[QueueRow], spans: Collection[int] = ()) -> bool:
        """Not supported: the driver's bulk load computes no values and fires no triggers."""
        return False

    def send_as_it_is(self, session: Session, row_id: str, headers: str, body: bytes) -> None:
        """Insert with the id: the table has no unique key on it."""
        self.put(session, row_id, headers, body)

    def put(self, session: Session, row_id: str, headers: str, body: bytes) -> int:
        """As ``send_as_it_is``; return the number of rows accepted."""
        return session.run(self._send, {"id": row_id, "ttbr_ms": None, "headers": headers, "body": body})

    def receiving(self, low: int = LOWEST, most: int = 1) -> Command:
        kind = BatchReceive if most > 1 else ReadingQuery
        return kind.of(self._sql.receive(table=self.address, most=most), received), {"low": low}

    def is_received(self, session: Any, row: ReceivedRow) -> bool:
        """Query the batch's outcome: a missing row proves nothing, since another may have taken it after a rollback."""
        return bool(session.batch_is_committed())

    def peek(self, session: Any) -> PeekResult:
        """Peek by the method of the DSN (S5), without update locks."""
        row = session.one(self._peeks[session.peek_method])
        if not row or row.head is None:
            return PeekResult(0, LOWEST)
        return PeekResult(1 if row.pending is None else row.pending, row.head)

    def purge(self, session: Session, expired_only: bool = False) -> int:
        statement = self._sql.purge_expired if expired_only else self._sql.purge
        query, purged = statement(table=self.address, most=PURGE_BATCH), 0
        while (batch := session.run(query)) >= PURGE_BATCH:  # the count includes rows of triggers
            purged += batch
        return purged + batch


def received(row: Any) -> Received:
    return Received(row.id, row.seq, bool(row.expired), with_columns_of(row), row.body)


def with_columns_of(row: Any) -> str:
    """The row's headers, completed by columns of old senders (S2)."""
    if not (row.correlation_id or row.reply_to):
        return str(row.headers)
    return _with_columns(row.headers, {_CORRELATION_ID: row.correlation_id, _REPLY_TO: row.reply_to})


def _with_columns(headers: str, columns: dict[str, str | None]) -> str:
    """Anything but a JSON object stays unchanged, and is handled as exhausted later."""
    try:
        known = orjson.loads(headers or "{}")
    except orjson.JSONDecodeError:
        return headers
    if not isinstance(known, dict):
        return headers
    return orjson.dumps({name: value for name, value in columns.items() if value} | known).decode()

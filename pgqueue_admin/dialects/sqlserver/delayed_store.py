"""A delayed table on SQL Server (contract: dialects.delayed_store.DelayedStore)."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.delayed_store import DelayedRow
from pgqueue_admin.dialects.sqlserver.query import Query
from pgqueue_admin.dialects.sqlserver.queue_store import AT_ONCE
from pgqueue_admin.dialects.sqlserver.recoverable_column import RecoverableColumn, RecoverableQuery
from pgqueue_admin.dialects.sqlserver.transport_table import BODY, HEADERS, ExpectedColumn, TransportTable
from pgqueue_admin.dialects.table_fault import TableFault

_COLUMNS = (HEADERS, BODY, ExpectedColumn("Due", "datetime", 8, "add_due", "retype_due"))


class SQLServerDelayed(TransportTable):
    """Insertions, moves and lookups run in the caller's transaction."""

    noun, kind = "delayed", "delayed"
    creation = ("create", "index_due")

    def __init__(self, sql: Any, address: Address, queue: Address):
        super().__init__(sql, address)
        self._queue = queue
        self._recoverable = RecoverableColumn(sql, queue)
        self._next_due = self._sql.next_due(table=address)

    def faults(self, session: Session, readable: bool = False) -> Iterator[TableFault]:
        found = self._columns(session)
        if not found:
            yield self._missing()
            return
        yield from self._column_faults(session, found, _COLUMNS)
        yield from self._index_fault(session, found, "Due", "each look reads all of it", self._sql.index_due)
        yield from self._body_column_fault(found, readable)

    def insertions(self, rows: Sequence[DelayedRow]) -> list[Command]:
        return [self._insertion(rows[start : start + AT_ONCE]) for start in range(0, len(rows), AT_ONCE)]

    def _insertion(self, rows: Sequence[DelayedRow]) -> Command:
        places = Query(", ".join(self._sql.row(place=place) for place in range(len(rows))))
        params: dict[str, Any] = {}
        for place, row in enumerate(rows):
            params |= {f"headers_{place}": row.headers, f"body_{place}": row.body}
            params |= {f"at_{place}": _utc(row.at), f"delay_ms_{place}": row.delay_ms}
        return self._sql.store(table=self.address, rows=places), params

    def move_due(self, session: Session, most: int) -> int:
        """Rows are never dropped silently: a queue with a trigger refuses them all."""
        named = {"table": self.address, "queue": self._queue, "batch": most}
        forms = self._sql.move_due(**named), self._sql.move_due_without_recoverable(**named)
        return session.run(RecoverableQuery.of(self._recoverable, *forms))

    def next_due(self, session: Session) -> float | None:
        seconds = session.value(self._next_due)
        return None if seconds is None else float(seconds)


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC).replace(tzinfo=None)

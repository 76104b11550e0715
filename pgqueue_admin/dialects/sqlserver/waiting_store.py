"""Acts on waiting messages of a SQL Server database (contract: dialects.waiting_store.WaitingStore)."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import TakenRow
from pgqueue_admin.dialects.sqlserver import addressing
from pgqueue_admin.dialects.sqlserver.crossing_store import which
from pgqueue_admin.dialects.sqlserver.looking_query import number_of
from pgqueue_admin.dialects.sqlserver.query import Query
from pgqueue_admin.dialects.sqlserver.queue_store import with_columns_of
from pgqueue_admin.dialects.sqlserver.recoverable_column import RecoverableColumn, RecoverableQuery
from pgqueue_admin.dialects.waiting_store import TableIdentity, WaitingCount


class _HeldRows:
    """``dialect``: its addresses are those of the catalog; ``native``: removes the alias from an address."""

    own: str  # the statement that lists columns that are not the transport's
    filled: str  # the statement that checks whether a row has a value in one

    def __init__(self, dialect: Any, native: Callable[[Address], Address]):
        self._dialect, self._sql, self._native = dialect, dialect.waiting, native

    def runs(self, session: Session, queue: Address) -> Sequence[str]:
        return [row.name for row in session.all(self._sql.runs(), self._named(queue))]

    def own_columns(self, session: Session, queue: Address) -> Sequence[str]:
        return [row.name for row in session.all(getattr(self._sql, self.own)(), self._named(queue))]

    def has_own(self, session: Session, queue: Address, row: TakenRow) -> bool:
        has_own, table = getattr(self._sql, self.filled), self._native(queue)
        own = self.own_columns(session, queue)
        return any(session.value(has_own(table=table, column=name), which(row)) for name in own)

    def _put(self, session: Session, queue: Address, row: TakenRow, target: Address, name: str) -> int:
        where = {"table": self._native(queue), "target": self._native(target)}
        column = RecoverableColumn(self._dialect, where["target"])
        forms = [getattr(self._sql, each)(**where) for each in (name, f"{name}_without_recoverable")]
        return session.run(RecoverableQuery.of(column, *forms), which(row))

    def _named(self, queue: Address) -> dict[str, str]:
        return {"table": addressing.qualified(self._native(queue))}


class SQLServerWaiting(_HeldRows):
    """Acts on queues."""

    own, filled = "own_columns", "has_own"

    def identity(self, session: Session, queue: Address) -> TableIdentity | None:
        row = session.one(self._sql.identity(), self._named(queue))
        return TableIdentity(*row) if row else None

    def count(self, session: Session, queue: Address) -> WaitingCount:
        row = session.one(self._sql.count(table=self._native(queue)))
        return WaitingCount(row.number, row.lowest, row.up_to) if row and row.number else WaitingCount(0, 0, 0)

    def left(self, session: Session, queue: Address, lowest: int, up_to: int) -> int:
        asked = {"lowest": lowest, "up_to": up_to}
        return int(session.value(self._sql.left(table=self._native(queue)), asked))

    def take(
        self, session: Session, queue: Address, limit: int, most: int, lowest: int, up_to: int
    ) -> Sequence[TakenRow]:
        own = self.own_columns(session, queue)
        unfilled = Query("".join(f" {self._sql.unfilled(column=name)}" for name in own))
        statement = self._sql.take(table=self._native(queue), limit=limit, unfilled=unfilled)
        rows = session.all(statement, {"most": most, "lowest": lowest, "up_to": up_to})
        return [_taken(row) for row in rows]

    def hold(self, session: Session, queue: Address, row_id: UUID, seq: int) -> TakenRow | None:
        row = session.one(self._sql.hold(table=self._native(queue)), {"id": str(row_id), "seq": seq})
        return _taken(row) if row else None

    def hold_each(self, session: Session, queue: Address, row_ids: Sequence[UUID]) -> Sequence[TakenRow]:
        """Find by seq, which is indexed: a search by id would lock every row that it reads."""
        asked = {"ids": json.dumps([str(each) for each in row_ids])}
        found = session.all(self._sql.numbers_of(table=self._native(queue)), asked)
        held = [self.hold(session, queue, UUID(row.id), row.seq) for row in found]
        return [row for row in held if row]

    def move(self, session: Session, queue: Address, row: TakenRow, target: Address) -> int:
        return self._put(session, queue, row, target, "move")


class SQLServerDelayedActs(_HeldRows):
    """Acts on delayed tables. These have no id: on pages the seq stands for it."""

    own, filled = "own_delayed_columns", "has_own_delayed"

    def hold(self, session: Session, table: Address, row_id: UUID, due: str) -> TakenRow | None:
        place = due.removesuffix("+00")
        try:
            asked = {"seq": number_of(row_id), "due": datetime.fromisoformat(place)}
        except ValueError:  # not a due time that a page has shown
            return None
        row = session.one(self._sql.hold_delayed(table=self._native(table)), asked)
        return TakenRow(0, place, uuid4(), None, row.headers, row.seq) if row else None

    def move(self, session: Session, queue: Address, row: TakenRow, target: Address) -> int:
        return self._put(session, queue, row, target, "run_now")


def _taken(row: Any) -> TakenRow:
    return TakenRow(0, "", UUID(row.id), row.expires, with_columns_of(row), row.seq)

"""Acts on waiting messages of another PostgreSQL database (contract: dialects.waiting_store.WaitingStore)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import TakenRow
from pgqueue_admin.dialects.waiting_store import TableIdentity, WaitingCount


class _HeldRows:
    """``dialect``: of that database, for its addresses. ``moved``: columns that every such table has."""

    moved: tuple[str, ...]

    def __init__(self, dialect: Any):
        self._dialect, self._sql, self._by_hand = dialect, dialect.waiting, dialect.move_to_archive

    def runs(self, session: Session, queue: Address) -> Sequence[str]:
        runs = self._by_hand.runs(calls=self._dialect.monitor.calls, is_engines=self._dialect.operation.is_engines)
        return session.value(runs, self._named(queue)) or ()

    def own_columns(self, session: Session, queue: Address) -> Sequence[str]:
        rows = session.all(self._by_hand.other_columns(), {**self._named(queue), "moved": list(self.moved)})
        return [row.name for row in rows]

    def has_own(self, session: Session, queue: Address, row: TakenRow) -> bool:
        own, has_value = self.own_columns(session, queue), self._by_hand.has_value
        return any(session.value(has_value(table=queue, column=name), _where(row)) for name in own)

    @contextmanager
    def _only_tables(self, session: Session, table: Address) -> Iterator[None]:
        """Refuse views in the block, in case the table was replaced by one; then lock the table, so that nobody adds a
        trigger before the rows are deleted."""
        session.run(self._by_hand.refuse_views())
        yield
        session.run(self._by_hand.allow_views())
        session.run(self._dialect.operation.hold_table(table=table))

    def _named(self, queue: Address) -> dict[str, str]:
        there = self._dialect.native(queue)
        return {"schema": there.schema, "name": there.table}


class PostgreSQLWaiting(_HeldRows):
    """Acts on queues."""

    moved = ("id", "expires", "headers", "body", "seq")

    def identity(self, session: Session, queue: Address) -> TableIdentity | None:
        row = session.one(self._dialect.purge.identity(), {**self._named(queue), "numbered_by": "seq"})
        return TableIdentity(row.oid, row.storage or "", row.last) if row else None

    def count(self, session: Session, queue: Address) -> WaitingCount:
        row = session.one(self._dialect.purge.waiting(table=queue))
        return WaitingCount(row.number, row.lowest, row.up_to) if row and row.number else WaitingCount(0, 0, 0)

    def left(self, session: Session, queue: Address, lowest: int, up_to: int) -> int:
        return int(session.value(self._dialect.purge.left(table=queue), {"lowest": lowest, "up_to": up_to}))

    def take(
        self, session: Session, queue: Address, limit: int, most: int, lowest: int, up_to: int
    ) -> Sequence[TakenRow]:
        filled = ("seq", *self.own_columns(session, queue))
        asked = {"limit": limit, "most": most, "lowest": lowest, "up_to": up_to}
        with self._only_tables(session, queue):
            return [TakenRow(*row) for row in session.all(self._sql.take(table=queue, filled=filled), asked)]

    def hold(self, session: Session, queue: Address, row_id: UUID, seq: int) -> TakenRow | None:
        with self._only_tables(session, queue):
            row = session.one(self._sql.hold(table=queue), {"id": row_id, "seq": seq})
        return TakenRow(*row) if row else None

    def hold_each(self, session: Session, queue: Address, row_ids: Sequence[UUID]) -> Sequence[TakenRow]:
        with self._only_tables(session, queue):
            rows = session.all(self._sql.hold_each(table=queue), {"ids": list(row_ids)})
        return [TakenRow(*row) for row in rows]

    def move(self, session: Session, queue: Address, row: TakenRow, target: Address) -> int:
        return session.run(self._sql.move(table=queue, target=target), _where(row))


class PostgreSQLDelayedActs(_HeldRows):
    """Acts on delayed tables."""

    moved = ("id", "headers", "body", "due")

    def hold(self, session: Session, table: Address, row_id: UUID, due: str) -> TakenRow | None:
        with self._only_tables(session, table):
            row = session.one(self._sql.hold_delayed(table=table), {"id": row_id, "due": due})
        return TakenRow(*row) if row else None

    def move(self, session: Session, queue: Address, row: TakenRow, target: Address) -> int:
        return session.run(self._sql.run_now(table=queue, target=target), _where(row))


def _where(row: TakenRow) -> dict[str, Any]:
    return {"place": row.place, "part": row.part}

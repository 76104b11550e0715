"""Crossings into and out of a SQL Server database (contract: dialects.crossing_store.CrossingStore)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import CommitOutcome, TakenRow
from pgqueue_admin.dialects.errors import Locked
from pgqueue_admin.dialects.sqlserver import addressing
from pgqueue_admin.dialects.sqlserver.query import written
from pgqueue_admin.dialects.sqlserver.queue_store import with_columns_of

TABLE = "PgqueueCrossing"
_ANOTHER = "Another database answers there now: it cannot tell what became of a transaction of the one before."
_DELAYED = (
    "Nothing is put into this database: its DELAYED_DURABILITY is FORCED, so a crash may undo what it has committed."
)


class SQLServerCrossings:
    """SQL Server does not report a transaction's outcome, so the mark is a row in a table that an administrator made.

    ``dialect``: its addresses are those of the catalog.
    """

    def __init__(self, dialect: Any):
        self._dialect, self._sql = dialect, dialect.crossing
        self._table = Address(dialect.default_schema, TABLE)

    def fault(self, session: Session) -> str:
        state = session.one(self._sql.state(), {"table": addressing.qualified(self._table)})
        if state is not None and state.is_delayed:
            return _DELAYED
        if state is None or not state.is_there:
            return f"Only by a table of its own it could tell what became of a transaction. Make it: {self.creation}"
        name = addressing.qualified(self._table)
        return "" if state.is_ours else f"The login may not select, insert and delete in {name}."

    @property
    def creation(self) -> str:
        """The statement that creates the table, for an administrator."""
        return " ".join(written(self._sql.create(table=self._table)).split())

    def here(self, session: Session) -> str:
        return str(session.value(self._sql.here()))

    def mark(self, session: Session) -> str:
        id = str(uuid4())
        session.run(self._sql.mark(table=self._table), {"id": id})
        return f"{self.here(session)} {id}"

    def pin(self, session: Session) -> None:
        """No effect: the mark is a row of that transaction."""

    def asked(self, mark: str) -> str:
        place, id = mark.split()
        return f"row {id} of {addressing.qualified(self._table)}, in database {place}"

    def commit_outcome(self, session: Session, mark: str) -> CommitOutcome:
        place, id = mark.split()
        if self.here(session) != place:
            return CommitOutcome("not_known", _ANOTHER)
        try:
            row = session.one(self._sql.commit_outcome(table=self._table), {"id": id})
        except Locked:
            return CommitOutcome("in_progress")
        assert row is not None
        if not row.is_primary:
            return CommitOutcome("in_progress")  # a secondary replica for now: it is queried again
        return CommitOutcome("committed" if row.found else "not_committed")

    def forget(self, session: Session, mark: str) -> None:
        session.run(self._sql.forget(table=self._table), {"id": mark.split()[1]})

    def put(self, session: Session, queue: Address, row_id: UUID, headers: str, body: bytes) -> int:
        put: int = self._dialect.queue_store(queue).put(session, str(row_id), headers, body)
        return put

    def take(self, session: Session, queue: Address, limit: int, most: int) -> list[TakenRow]:
        rows = session.all(self._sql.take(table=queue, limit=limit), {"most": most})
        return [TakenRow(0, "", UUID(row.id), row.expires, with_columns_of(row), row.seq) for row in rows]

    def body(self, session: Session, queue: Address, row: TakenRow) -> bytes | None:
        statement = self._sql.delayed_body if row.place else self._sql.body
        body = session.value(statement(table=queue), which(row))
        return None if body is None else bytes(body)

    def remove(self, session: Session, queue: Address, rows: Sequence[TakenRow]) -> int:
        own, delayed = self._sql.remove(table=queue), self._sql.remove_delayed(table=queue)
        return sum(session.run(delayed if row.place else own, which(row)) for row in rows)


def which(row: TakenRow) -> dict[str, Any]:
    """Parameters that find a locked row again: the indexed seq, and the id, in case another row has that seq.

    A delayed message has no id; its ``place`` is its due time.
    """
    due = {"due": datetime.fromisoformat(row.place)} if row.place else {}
    return {"seq": row.seq, "id": str(row.id), **due}


class AliasedCrossings(SQLServerCrossings):
    """Takes addresses with the alias before their schema."""

    def __init__(self, dialect: Any, aliased: Any):
        super().__init__(dialect)
        self._native = aliased.native

    def put(self, session: Session, queue: Address, row_id: UUID, headers: str, body: bytes) -> int:
        return super().put(session, self._native(queue), row_id, headers, body)

    def take(self, session: Session, queue: Address, limit: int, most: int) -> list[TakenRow]:
        return super().take(session, self._native(queue), limit, most)

    def body(self, session: Session, queue: Address, row: TakenRow) -> bytes | None:
        return super().body(session, self._native(queue), row)

    def remove(self, session: Session, queue: Address, rows: Sequence[TakenRow]) -> int:
        return super().remove(session, self._native(queue), rows)

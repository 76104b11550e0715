"""Crossings into and out of a PostgreSQL database (contract: dialects.crossing_store.CrossingStore)."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import CommitOutcome, TakenRow
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.statements import Statement, Statements

_IN_THE_FUTURE = "22023"
_STATES = {"committed": "committed", "aborted": "not_committed", "in progress": "in_progress"}
_ANOTHER = "Another server answers there now: it cannot tell what became of a transaction of the one before."
_PROMOTED = "The server was promoted or restored since: a transaction's number may mean another one now."
_SET_BACK = "The server was set back to a time before this transaction."
_TOO_OLD = "The transaction is older than what the server remembers."


class PostgreSQLCrossings:
    """The mark contains the transaction's number, so no table of ours is needed there."""

    def __init__(self, sql: Statements, hold_table: Statement):
        self._sql, self._hold_table = sql, hold_table

    def fault(self, session: Session) -> str:
        return ""

    def here(self, session: Session) -> str:
        return str(session.value(self._sql.here()))

    def mark(self, session: Session) -> str:
        session.run(self._sql.durable())
        return " ".join(session.one(self._sql.mark()))  # type: ignore[arg-type]

    def pin(self, session: Session) -> None:
        with session.transaction():
            session.run(self._sql.pinned())
            session.run(self._sql.pin())

    def asked(self, mark: str) -> str:
        cluster, timeline, xid, lsn = mark.split()
        return f"pg_xact_status({xid}), in cluster {cluster} on timeline {timeline}, not before {lsn} of its log"

    def commit_outcome(self, session: Session, mark: str) -> CommitOutcome:
        cluster, timeline, xid, lsn = mark.split()
        asked = {"cluster": cluster, "timeline": timeline, "xid": xid, "lsn": lsn}
        try:
            here = session.one(self._sql.commit_outcome(), asked)
        except DatabaseError as error:
            if error.sqlstate != _IN_THE_FUTURE:
                raise
            return CommitOutcome("not_known", _SET_BACK)
        assert here is not None
        if here.cluster == cluster and here.timeline is None:
            return CommitOutcome("in_progress")  # a standby for now: it is queried again
        if here.status is None:
            return CommitOutcome("not_known", _why(here, cluster, timeline))
        return CommitOutcome(_STATES[here.status])  # type: ignore[arg-type]

    def forget(self, session: Session, mark: str) -> None:
        """No effect: the server forgets it in time."""

    def put(self, session: Session, queue: Address, row_id: UUID, headers: str, body: bytes) -> int:
        return session.run(self._sql.put(table=queue), {"id": row_id, "headers": headers, "body": body})

    def take(self, session: Session, queue: Address, limit: int, most: int) -> list[TakenRow]:
        rows = session.all(self._sql.take(table=queue), {"limit": limit, "most": most})
        if rows:
            session.run(self._hold_table(table=queue))
        return [TakenRow(*row) for row in rows]

    def body(self, session: Session, queue: Address, row: TakenRow) -> bytes | None:
        body = session.value(self._sql.body(table=queue), {"place": row.place, "part": row.part})
        return None if body is None else bytes(body)

    def remove(self, session: Session, queue: Address, rows: Sequence[TakenRow]) -> int:
        held = {"parts": [row.part for row in rows], "places": [row.place for row in rows]}
        return session.run(self._sql.remove(table=queue), held)


def _why(here: Any, cluster: str, timeline: str) -> str:
    if here.cluster != cluster:
        return _ANOTHER
    if here.timeline != timeline:
        return _PROMOTED
    return _SET_BACK if here.is_behind else _TOO_OLD

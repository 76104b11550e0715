"""PREPARE TRANSACTION and what follows it (contract: dialects.two_phase.TwoPhase)."""

import re
from collections.abc import Iterator
from typing import Any

from psycopg import sql

from pgqueue_admin.dialects.connection import Session, TwoPhaseSession
from pgqueue_admin.dialects.errors import DatabaseError, NotifyCannotBePrepared
from pgqueue_admin.dialects.statements import Statement, StatementFolder
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.dialects.two_phase import Branch, Prepared

_GID = re.compile(r"pgqueue_([0-9a-f]{32})_([0-9a-f]{32})_([a-z0-9_]{1,31})")
_NOT_THERE = "42704"
_BUSY = "55000"  # another session is ending it


class PostgreSQLTwoPhase:
    """A prepared transaction's name is ``pgqueue_<coordinator>_<id>_<database>``."""

    def __init__(self, folder: StatementFolder):
        self._sql = folder.two_phase

    def faults(self, session: Session) -> Iterator[TableFault]:
        if session.value(self._sql.most()) == 0:
            said = "The server prepares no transactions: max_prepared_transactions is 0."
            yield TableFault(said, "alter system set max_prepared_transactions = 100; then restart the server", True)

    def begin(self, session: TwoPhaseSession, branch: Branch) -> None:
        session.begin_with([self._sql.begin()])

    def prepare(self, session: TwoPhaseSession, branch: Branch) -> None:
        try:
            session.end_with([_named(self._sql.prepare, branch)])
        except DatabaseError as error:
            if error.sqlstate == "0A000" and "NOTIFY" in error.detail:
                raise NotifyCannotBePrepared(error.detail, error.sqlstate) from error
            raise

    def commit(self, session: TwoPhaseSession, branch: Branch) -> bool:
        return _ended(session, _named(self._sql.commit, branch))

    def rollback(self, session: TwoPhaseSession, branch: Branch) -> bool:
        return _ended(session, _named(self._sql.rollback, branch))

    def prepared(self, session: Session, coordinator: str) -> list[Branch]:
        rows = session.all(self._sql.prepared(), {"prefix": f"pgqueue_{coordinator}_"})
        found = [_GID.fullmatch(row.gid) for row in rows]
        return [Branch(*match.groups()) for match in found if match]

    def in_doubt(self, session: Session, most: int) -> list[Prepared]:
        rows = session.all(self._sql.in_doubt(most=most), {"prefix": "pgqueue_"})
        return [_prepared(row) for row in rows]


def _prepared(row: Any) -> Prepared:
    """Table names can be resolved only in the session's own database."""
    tables = tuple(row.tables) if row.is_here else None
    coordinator, id = [*row.name.split("_"), "", ""][1:3]
    return Prepared(row.name, coordinator, id, row.prepared, row.owner, row.database, tables, row.waiting, row.is_here)


def _named(statement: Statement, branch: Branch) -> Any:
    """Compose without the cache: each statement is used once, and would displace others."""
    gid = f"pgqueue_{branch.coordinator}_{branch.id}_{branch.database}"
    return sql.SQL(statement.text).format(gid=sql.Literal(gid))


def _ended(session: TwoPhaseSession, query: Any) -> bool:
    try:
        session.end_prepared(query)
    except DatabaseError as error:
        if error.sqlstate in (_NOT_THERE, _BUSY):
            return False
        raise
    return True

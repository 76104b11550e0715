"""XA transactions (contract: dialects.two_phase.TwoPhase). Prepared ones outlive their session, as on MariaDB."""

import re
from collections.abc import Iterator
from typing import Any

from pgqueue_admin.dialects.connection import Session, TwoPhaseSession
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, NoSuchBranch, NotPermitted
from pgqueue_admin.dialects.mysql.query import Query
from pgqueue_admin.dialects.statements import Statement, StatementFolder
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.dialects.two_phase import Branch, Prepared

FORMAT = 0x70677175  # format id of our identifiers: "pgqu"
_XID = re.compile(r"([0-9a-f]{32})([0-9a-f]{32})([a-z0-9_]{1,31})")


class MySQLTwoPhase:
    """An XA identifier has two parts of at most 64 bytes: coordinator and id; the database's name."""

    def __init__(self, folder: StatementFolder):
        self._sql, self._waits = folder.two_phase, folder.lock_waits

    def faults(self, session: Session) -> Iterator[TableFault]:
        try:
            session.all(self._sql.prepared())
        except NotPermitted as error:
            said = f"The role may not list what is prepared: {error.detail}"
            yield TableFault(said, "grant XA_RECOVER_ADMIN on *.* to that role", True)

    def begin(self, session: TwoPhaseSession, branch: Branch) -> None:
        session.begin_with([_named(self._sql.begin, branch)])

    def prepare(self, session: TwoPhaseSession, branch: Branch) -> None:
        session.end_with([_named(self._sql.end, branch), _named(self._sql.prepare, branch)])

    def commit(self, session: TwoPhaseSession, branch: Branch) -> bool:
        return _ended(session, _named(self._sql.commit, branch))

    def rollback(self, session: TwoPhaseSession, branch: Branch) -> bool:
        return _ended(session, _named(self._sql.rollback, branch))

    def prepared(self, session: Session, coordinator: str) -> list[Branch]:
        return [each for each in self._all(session) if each.coordinator == coordinator]

    def in_doubt(self, session: Session, most: int) -> list[Prepared]:
        """The server reports neither time nor owner; tables and waiting sessions only for all branches together."""
        found = self._all(session)[:most]
        waits = self._behind(session) if found else None
        tables = tuple(sorted({row.table.replace("`", "") for row in waits})) if waits else None
        waiting = len({row.waits for row in waits}) if waits is not None else None
        return [
            Prepared("".join(each), each.coordinator, each.id, None, None, None, tables, waiting, True, len(found) > 1)
            for each in found
        ]

    def _all(self, session: Session) -> list[Branch]:
        rows = [row for row in session.all(self._sql.prepared()) if row.formatID == FORMAT]
        found = [_XID.fullmatch(_text(row.data)) for row in rows]
        return [Branch(*match.groups()) for match in found if match]

    def _behind(self, session: Session) -> list[Any] | None:
        """Lock waits behind prepared branches; None without the right, or on MySQL 8, which lacks these tables."""
        try:
            return session.all(self._waits.behind_prepared())
        except DatabaseDown:
            raise
        except DatabaseError:
            return None


def _named(statement: Statement, branch: Branch) -> Query:
    """Insert the identifier unquoted: it has letters, digits and underscores only."""
    xid = f"'{branch.coordinator}{branch.id}', '{branch.database}', {FORMAT}"
    return Query(statement.text.replace("{xid}", xid))


def _text(data: str | bytes) -> str:
    return data if isinstance(data, str) else data.decode("ascii", "replace")


def _ended(session: TwoPhaseSession, query: Query) -> bool:
    try:
        session.end_prepared(query)
    except NoSuchBranch:
        return False
    return True

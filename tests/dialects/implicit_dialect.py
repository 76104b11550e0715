"""A third dialect: SQL Server's own session over PostgreSQL, with the plain dialect's tables, and with batches.

As on SQL Server, a refused statement undoes only itself, and the first statement after a transaction begins another.
Transaction control is written in PostgreSQL's SQL; SQL Server's own text is tested elsewhere.
"""

from typing import Any

import psycopg

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.connection import Command, Params, Row
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.implicit_session import row_type
from pgqueue_admin.dialects.postgresql.session import translate
from pgqueue_admin.dialects.queue_store import LOWEST, ReceivedRow
from pgqueue_admin.dialects.sqlserver.query import Query
from pgqueue_admin.dialects.sqlserver.queue_store import BatchReceive
from pgqueue_admin.dialects.sqlserver.session import SQLServerSession
from tests.dialects.plain_dialect import Plain, PlainQueue

SCHEME = "implicit"
_THIS = "pg_current_xact_id()::text::bigint"
_SAME = f"do $$ begin if {_THIS} <> {{id}} then raise sqlstate '25P01'; end if; end $$"


class _Control(str):
    """A transaction control statement: a refusal of it rolls nothing back."""

    __slots__ = ()


class _Words:
    """Statements named as in sqlserver/session.sql."""

    _texts = {
        "guard": f"select {_THIS} as id",
        "guard_batch": f"truncate pgqueue_batch; insert into pgqueue_batch select {_THIS} returning id",
        "batch_is_committed": "select count(*) as found from pgqueue_batch where id = {id}",
        "commit": "commit",
        "commit_guarded": f"{_SAME}; commit",
        "rollback": "rollback",
        "savepoint": f"{_SAME}; savepoint {{name}}",
        "release_savepoint": _SAME,
        "undo_savepoint": f"{_SAME}; rollback to savepoint {{name}}",
    }

    def __getattr__(self, name: str) -> Any:
        return lambda **identifiers: _Control(self._texts[name].format(**identifiers))


class ImplicitSession(SQLServerSession):
    """A handler's direct use of the driver is not reported to it: ``raw`` is PostgreSQL's own connection."""

    def __init__(self, raw: psycopg.Connection[Any]):
        super().__init__(raw, _Words())  # type: ignore[arg-type]
        raw.execute("create temporary table pgqueue_batch (id bigint)")
        raw.commit()

    def _execute(self, query: Any, params: Params = None) -> tuple[list[Row], int]:
        try:
            return self._answered(query, params)
        except psycopg.Error as error:
            raise translate(error) from error

    def _answered(self, query: Any, params: Params) -> tuple[list[Row], int]:
        if isinstance(query, _Control):
            return self._asked(query, None)
        self.raw.execute("savepoint of_a_statement")
        try:
            return self._asked(query, params)
        except psycopg.Error:
            self.raw.execute("rollback to savepoint of_a_statement")
            raise

    def _asked(self, query: Any, params: Params) -> tuple[list[Row], int]:
        cursor = self.raw.execute(query, params or None, prepare=False)
        while cursor.nextset():
            pass
        if cursor.description is None:
            return [], cursor.rowcount
        row = row_type(tuple(column.name for column in cursor.description))
        return [row(*each) for each in cursor.fetchall()], cursor.rowcount

    @property
    def closed(self) -> bool:
        return bool(self.raw.closed)

    @property
    def closed_locally(self) -> bool:
        return bool(self.raw.closed and not self.raw.broken)

    def abort(self) -> None:
        self.raw.close()

    def close(self) -> None:
        self.raw.close()


class ImplicitQueue(PlainQueue):
    def receiving(self, low: int = LOWEST, most: int = 1) -> Command:
        query, params = super().receiving(low, most)
        return (BatchReceive.of(Query(query.as_string()), _as_it_is), params) if most > 1 else (query, params)

    def is_received(self, session: Any, row: ReceivedRow) -> bool:  # type: ignore[override]
        return bool(session.batch_is_committed())


def _as_it_is(row: Any) -> Any:
    return row


class Implicit(Plain):
    name = SCHEME
    supports_batches = True

    def queue_store(self, address: Address) -> ImplicitQueue:
        return ImplicitQueue(address)

    def connect(self, dsn: str, **options: Any) -> Any:
        at = "postgresql://" + dsn.split("://", 1)[1]
        try:
            return ImplicitSession(psycopg.connect(at, options="-c timezone=UTC"))
        except psycopg.Error as error:
            raise DatabaseDown(str(error)) from error

    def borrow(self, raw: Any) -> Any:
        return ImplicitSession(raw)


def implicit() -> Implicit:
    return Implicit()

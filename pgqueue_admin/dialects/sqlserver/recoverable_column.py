"""Recoverable: a column that a queue table may lack (wire sheet 10.1), and statements that depend on it."""

from typing import Any

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.errors import TableChanged, TableMissing
from pgqueue_admin.dialects.sqlserver import addressing
from pgqueue_admin.dialects.sqlserver.query import Query
from pgqueue_admin.dialects.statements import StatementFolder

COLUMN = "Recoverable"


class RecoverableColumn:
    """Whether a table has it: queried once, and again after an error that names it or a missing table."""

    def __init__(self, sql: StatementFolder, table: Address):
        self._query = sql.queue.has_recoverable()
        self._named = {"table": addressing.qualified(table)}
        self._is_there: bool | None = None

    def is_there(self, session: Any) -> bool:
        if self._is_there is None:
            self._is_there = bool(session.value(self._query, self._named))
        return self._is_there

    def refused(self, error: Exception) -> None:
        if isinstance(error, TableMissing) or (isinstance(error, TableChanged) and COLUMN in error.detail):
            self._is_there = None


class RecoverableQuery(Query):
    """A statement that writes the column if it exists."""

    column: RecoverableColumn
    without: Query

    @classmethod
    def of(cls, column: RecoverableColumn, with_it: Query, without: Query) -> "RecoverableQuery":
        made = cls(with_it)
        made.column, made.without = column, without
        return made

    def form_for(self, session: Any) -> Query:
        return self if self.column.is_there(session) else self.without

    def refused(self, error: Exception) -> None:
        self.column.refused(error)

"""An open session of SQL Server; it raises our errors for the driver's."""

from collections.abc import Iterable
from typing import Any

from pgqueue_admin.dialects import errors
from pgqueue_admin.dialects.connection import Command, Params, Row
from pgqueue_admin.dialects.implicit_session import ImplicitSession, row_type
from pgqueue_admin.dialects.sqlserver import driver
from pgqueue_admin.dialects.sqlserver.connect_options import PeekMethod
from pgqueue_admin.dialects.sqlserver.query import Query
from pgqueue_admin.dialects.sqlserver.tds_wire import TdsWire
from pgqueue_admin.dialects.statements import Statements

STOP_SECONDS = 1.0  # within which the server must confirm a cancelled statement


class SQLServerSession(ImplicitSession):
    """Implements ReceiveSession (dialects.connection). Implicit transactions are on throughout.

    A statement with parameters runs in sp_executesql: its SET options end with it. Statements that end a transaction
    have none, because the server requires the same number of open transactions before and after a procedure.
    """

    def __init__(
        self, raw: Any, sql: Statements, wire: TdsWire | None = None, peek_method: PeekMethod = "count"
    ) -> None:
        super().__init__()
        self.raw, self.peek_method = raw, peek_method
        self._sql, self._wire = sql, wire
        self._answer_seconds = wire.seconds if wire else None
        self._guarded_id = self._batch_id = 0
        self._is_batch = False
        self._is_lost = False
        self.dialect: Any = None  # the one that made it, for monitoring
        self.only_looks = False

    # --- statements

    def _answer(self, query: Any, params: Params = None) -> tuple[list[Row], int]:
        if not isinstance(query, Query):
            return self._execute(query, params)
        form = query.form_for(self)
        try:
            rows, touched = self._execute(form, form.given(params))
        except errors.DatabaseError as error:
            query.refused(error)
            raise
        return [query.read(row) for row in rows], touched

    def _execute(self, query: str, params: Params = None) -> tuple[list[Row], int]:
        if self.closed:
            raise errors.DatabaseDown("the session is closed")
        try:
            names, rows, touched = driver.execute(self.raw, query, params)
        except errors.NoAnswer as error:
            if self._is_stopped():
                raise errors.TimedOut(f"it was given {error.seconds:g} s") from error
            self._lose()
            raise
        except errors.DatabaseError as error:
            if isinstance(error, errors.DatabaseDown):
                self._lose()
            raise
        except BaseException:  # in the middle of a request or an answer
            self._lose()
            raise
        if not names:
            return [], touched
        row = row_type(names)
        return [row(*each) for each in rows], touched

    def _is_stopped(self) -> bool:
        """Cancel a monitoring statement that timed out; whether the server confirmed."""
        if not self.only_looks or self._wire is None or self._wire.is_answered:
            return False
        self._wire.seconds = STOP_SECONDS
        try:
            return driver.stop(self.raw)
        finally:
            self._wire.seconds = self._answer_seconds

    def _lose(self) -> None:
        """Close the session: after an unread answer, the next one could belong to another statement."""
        self._is_lost = True
        if self._wire:
            self._wire.close()

    def batch(self, asked: Iterable[Command]) -> list[list[Row]]:
        """Execute statements in one transaction. The first error is raised, and all are undone."""
        with self.transaction():
            return [self.all(query, params) for query, params in asked]

    # --- transactions

    def begin(self) -> None:
        super().begin()
        self._is_batch = False

    def begins_batch(self) -> None:
        """Make the open transaction's outcome queryable from its first savepoint on."""
        self._is_batch = True

    def batch_is_committed(self) -> bool:
        """Whether the last batch with a savepoint was committed, by whomever. Not inside a transaction to continue."""
        return bool(self._batch_id and self.value(self._sql.batch_is_committed(id=self._batch_id)))

    def _end(self, is_guarded: bool) -> None:
        self._execute(self._sql.commit_guarded(id=self._guarded_id) if is_guarded else self._sql.commit())

    def _undo(self) -> None:
        self._execute(self._sql.rollback())

    def _set_savepoint(self, name: str) -> None:
        self.place_guard()
        self._execute(self._sql.savepoint(name=name, id=self._guarded_id))

    def _release_savepoint(self, name: str) -> None:
        self._execute(self._sql.release_savepoint(id=self._guarded_id))

    def _undo_savepoint(self, name: str) -> None:
        self._execute(self._sql.undo_savepoint(name=name, id=self._guarded_id))

    def _set_guard(self) -> None:
        rows, _ = self._execute(self._sql.guard_batch() if self._is_batch else self._sql.guard())
        self._guarded_id = int(rows[0].id)
        if self._is_batch:
            self._batch_id = self._guarded_id

    # --- the session itself

    def is_closed_by_server(self) -> bool:
        return self.closed or bool(self._wire and self._wire.has_farewell())

    def lend(self, is_lent: bool) -> None:
        if self._wire:
            self._wire.seconds = None if is_lent else self._answer_seconds

    def wait_at_most(self, seconds: float | None) -> None:
        """Set the answer timeout."""
        self._answer_seconds = seconds
        if self._wire:
            self._wire.seconds = seconds

    def close_if_busy(self) -> None:
        """No effect: the driver reads an unread answer to its end before the next statement."""

    @property
    def closed(self) -> bool:
        return self._is_lost or driver.is_closed(self.raw)

    @property
    def closed_locally(self) -> bool:
        return not self._is_lost and bool(driver.is_closed(self.raw))

    def abort(self) -> None:
        if self._wire:
            self._wire.abort()

    def close(self) -> None:
        if not driver.is_closed(self.raw):
            self.raw.close()

"""An open session of MySQL or MariaDB; it raises our errors for the driver's."""

import select
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from pgqueue_admin.dialects.connection import Params, Row
from pgqueue_admin.dialects.implicit_session import ImplicitSession, row_type
from pgqueue_admin.dialects.mysql.error_mapping import translate
from pgqueue_admin.dialects.mysql.query import BoundedQuery, Query

GUARD, RELEASE = "savepoint pgqueue_guard", "release savepoint pgqueue_guard"


class MySQLSession(ImplicitSession):
    """Implements ReceiveSession (dialects.connection). The server's autocommit is off throughout."""

    def __init__(self, raw: "pymysql.Connection[Cursor]", answer_seconds: float | None = None):
        super().__init__()
        self.raw: Any = raw  # Any, because its stubs lack private members
        self.dialect: Any = None  # set by the pool
        self._answer_seconds = answer_seconds
        self._has_prepared = False

    def _answer(self, query: Any, params: Params = None) -> tuple[list[Row], int]:
        return self._bounded(query, params) if isinstance(query, BoundedQuery) else self._execute(query, params)

    def _bounded(self, query: BoundedQuery, params: Params) -> tuple[list[Row], int]:
        self._execute(query.wait, params)
        try:
            return self._execute(query, params)
        finally:
            if not self.closed:
                self._execute(query.as_before)

    def _execute(self, query: str, params: Params = None) -> tuple[list[Row], int]:
        given: Any = {} if params is None and isinstance(query, Query) else params  # our queries have doubled %
        try:
            with self.raw.cursor(Cursor) as cursor:  # the plain class, whatever cursor class the owner has set
                cursor.execute(query, given)
                if cursor.description is None:
                    return [], cursor.rowcount
                row = row_type(tuple(column[0] for column in cursor.description))
                return [row(*each) for each in cursor.fetchall()], cursor.rowcount
        except pymysql.Error as error:
            raise translate(error, self._answer_seconds) from error

    # --- transactions

    def _end(self, is_guarded: bool) -> None:
        if is_guarded:
            self._execute(RELEASE)
        self._execute("commit")

    def _undo(self) -> None:
        self._execute("rollback")

    def _set_savepoint(self, name: str) -> None:
        self._execute(f"savepoint {name}")

    def _release_savepoint(self, name: str) -> None:
        self._execute(f"release savepoint {name}")

    def _undo_savepoint(self, name: str) -> None:
        self._execute(f"rollback to savepoint {name}")

    def _set_guard(self) -> None:
        self._execute(GUARD)

    def begin_with(self, queries: Iterable[Any]) -> None:
        self.begin()
        for query in queries:
            self._ask(query, None)

    def end_with(self, queries: Iterable[Any]) -> None:
        self._insist()
        if self._is_guarded:
            self._ask(RELEASE, None)
        for query in queries:
            self._ask(query, None)
        self._depth, self._is_guarded, self._has_prepared = 0, False, True

    def end_prepared(self, query: Any) -> None:
        """End the branch. The server ends another session's branch only with autocommit on."""
        if self._has_prepared:
            self._execute(query)
            self._has_prepared = False
            return
        self._execute("set autocommit = 1")
        try:
            self._execute(query)
        finally:
            if not self.closed:
                self._execute("set autocommit = 0")

    # --- the session itself

    def is_closed_by_server(self) -> bool:
        """Whether unsolicited data has arrived: the server sends some only when it closes the session."""
        if self.closed:
            return True
        waiting = select.poll()
        waiting.register(self.raw._sock, select.POLLIN)
        return bool(waiting.poll(0))

    def lend(self, is_lent: bool) -> None:
        self.raw._read_timeout = None if is_lent else self._answer_seconds

    def close_if_busy(self) -> None:
        result = self.raw._result
        if result is not None and result.unbuffered_active:
            self.close()

    @property
    def closed(self) -> bool:
        return not self.raw.open

    @property
    def closed_locally(self) -> bool:
        return bool(self.raw._closed)

    def abort(self) -> None:
        """Shut down the socket, so that a waiting thread fails at once; closing it would not wake that thread."""
        sock = self.raw._sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if not self.closed_locally:
            self.raw.close()

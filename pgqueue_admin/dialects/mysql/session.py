"""An open session of MySQL or MariaDB; the driver's errors come out as ours."""

import select
import socket
from collections import namedtuple
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from typing import Any, Self

import pymysql
from pymysql.cursors import Cursor

from pgqueue_admin.dialects import errors
from pgqueue_admin.dialects.connection import Command, Params, Row
from pgqueue_admin.dialects.mysql.error_mapping import translate
from pgqueue_admin.dialects.mysql.query import BoundedQuery, Query

GUARD, RELEASE = "savepoint pgqueue_guard", "release savepoint pgqueue_guard"


@lru_cache(maxsize=1024)
def _row_type(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names, rename=True)


class MySQLSession:
    """Implements ReceiveSession (dialects.connection).

    The server's autocommit is off throughout: where it ends a transaction by itself, at a deadlock or a handler's DDL,
    what follows is no commit of its own. A statement outside of ``transaction()`` is followed by a commit of ours.
    """

    def __init__(self, raw: "pymysql.Connection[Cursor]", answer_seconds: float | None = None):
        self.raw: Any = raw  # with what its stubs keep to themselves
        self._answer_seconds = answer_seconds
        self._depth = 0  # of transaction and savepoints
        self._is_doomed = self._is_guarded = self._has_prepared = False

    # --- asking

    def all(self, query: Any, params: Params = None) -> list[Row]:
        return self._alone(query, params)[0]

    def one(self, query: Any, params: Params = None) -> Row | None:
        rows = self.all(query, params)
        return rows[0] if rows else None

    def value(self, query: Any, params: Params = None) -> Any:
        row = self.one(query, params)
        return row[0] if row else None

    def run(self, query: Any, params: Params = None) -> int:
        return self._alone(query, params)[1]

    def run_all(self, asked: Iterable[Command]) -> None:
        if self.in_transaction:
            for query, params in asked:
                self._ask(query, params)
            return
        with self.transaction():
            for query, params in asked:
                self._ask(query, params)

    def run_last(self, asked: Iterable[Command]) -> None:
        self.run_all(asked)

    def _alone(self, query: Any, params: Params) -> tuple[list[Row], int]:
        if self.in_transaction:
            return self._ask(query, params)
        with self.transaction():
            return self._ask(query, params)

    def _ask(self, query: Any, params: Params) -> tuple[list[Row], int]:
        """The rows, and how many were touched. A failure dooms the transaction, as far as the savepoint before it."""
        if self._is_doomed:
            raise errors.DatabaseError("a statement failed before: the transaction takes no more")
        try:
            return self._bounded(query, params) if isinstance(query, BoundedQuery) else self._execute(query, params)
        except BaseException:
            self._is_doomed = True
            raise

    def _bounded(self, query: BoundedQuery, params: Params) -> tuple[list[Row], int]:
        self._execute(query.wait, params)
        try:
            return self._execute(query, params)
        finally:
            if not self.closed:
                self._execute(query.as_before)

    def _execute(self, query: str, params: Params = None) -> tuple[list[Row], int]:
        given: Any = {} if params is None and isinstance(query, Query) else params  # our % are doubled
        try:
            with self.raw.cursor(Cursor) as cursor:  # plain, whatever its owner has set up for himself
                cursor.execute(query, given)
                if cursor.description is None:
                    return [], cursor.rowcount
                row = _row_type(tuple(column[0] for column in cursor.description))
                return [row(*each) for each in cursor.fetchall()], cursor.rowcount
        except pymysql.Error as error:
            raise translate(error, self._answer_seconds) from error

    # --- transactions

    def transaction(self) -> AbstractContextManager[Any]:
        return _Savepoint(self) if self.in_transaction else _Transaction(self)

    def transaction_with(self, query: Any, params: Params = None) -> AbstractContextManager[list[Row]]:
        return _Transaction(self, (query, params))

    def transaction_behind(self, query: Any, params: Params = None) -> None:
        return None

    def begin(self) -> None:
        self._depth, self._is_doomed, self._is_guarded = 1, False, False

    def commit(self) -> None:
        """Or raise why nothing was committed."""
        try:
            self._insist()
            if self._is_guarded:
                self._execute(RELEASE)
            self._execute("commit")
        except BaseException:
            self.roll_back()
            raise
        self._depth, self._is_guarded = 0, False

    def _insist(self) -> None:
        if self.was_closed:
            raise errors.SessionClosedByHandler
        if self.closed:
            raise errors.DatabaseDown("the session was lost before the commit: nothing was committed")
        if not self.in_transaction:
            raise errors.TransactionEndedByHandler
        if self._is_doomed:
            raise errors.DatabaseError("a statement failed and was ignored: nothing can be committed")

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
        """Its own it has in hand; of others' ones the server takes that with autocommit alone."""
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

    def begin_savepoint(self) -> None:
        self._ask(f"savepoint pgqueue_{self._depth}", None)
        self._depth += 1

    def end_savepoint(self) -> None:
        self._insist()
        self._depth -= 1
        self._ask(f"release savepoint pgqueue_{self._depth}", None)

    def undo_savepoint(self) -> None:
        """Where the server has undone all of the transaction there is no such savepoint, and it stays doomed."""
        if self.in_transaction and not self.closed:
            self._depth -= 1
            with suppress(errors.DatabaseError):
                self._execute(f"rollback to savepoint pgqueue_{self._depth}")
                self._is_doomed = False

    def guard(self) -> None:
        if not self._is_guarded:
            self._ask(GUARD, None)
            self._is_guarded = True

    def roll_back(self) -> None:
        was_open, self._depth, self._is_doomed, self._is_guarded = self.in_transaction, 0, False, False
        if was_open and not self.closed:
            with suppress(errors.DatabaseError):
                self._execute("rollback")

    @property
    def in_transaction(self) -> bool:
        return self._depth > 0

    @property
    def has_failed(self) -> bool:
        return self._is_doomed

    # --- the session itself

    def ended(self) -> bool:
        """What comes unasked is the server's farewell."""
        if self.closed:
            return True
        waiting = select.poll()
        waiting.register(self.raw._sock, select.POLLIN)
        return bool(waiting.poll(0))

    def settings(self) -> None:
        return None

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
    def was_closed(self) -> bool:
        return bool(self.raw._closed)

    def cut(self) -> None:
        """Who waits for an answer hears at once that none comes, which closing the socket would not tell him."""
        sock = self.raw._sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if not self.was_closed:
            self.raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Transaction(AbstractContextManager[Any]):
    """The outermost. No generator: one that is dropped half way would end whatever has begun since."""

    def __init__(self, session: MySQLSession, first: Command | None = None):
        self._session, self._first = session, first

    def __enter__(self) -> Any:
        self._session.begin()
        if self._first is None:
            return self._session
        try:
            return self._session.all(*self._first)
        except BaseException:
            self._session.roll_back()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._session.commit()
        else:
            self._session.roll_back()


class _Savepoint(AbstractContextManager[Any]):
    def __init__(self, session: MySQLSession):
        self._session = session

    def __enter__(self) -> MySQLSession:
        self._session.begin_savepoint()
        return self._session

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            return self._session.undo_savepoint()
        try:
            self._session.end_savepoint()
        except BaseException:
            self._session.undo_savepoint()
            raise
        return None

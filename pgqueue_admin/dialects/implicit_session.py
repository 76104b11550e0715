"""A session whose server starts a transaction with the first statement after a commit.

Statements after a transaction that the server ended, by a deadlock or a handler's DDL, are not autocommitted. We commit
after a statement outside of ``transaction()``. MySQL and SQL Server are used so.
"""

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from typing import Any, Self, TypeVar

from pgqueue_admin.dialects import errors
from pgqueue_admin.dialects.connection import Command, Params, Row

_T = TypeVar("_T")
DOOMED = "a statement failed before: the transaction takes no more"


@lru_cache(maxsize=1024)
def row_type(names: tuple[str, ...]) -> Any:
    """A row of these columns."""
    return namedtuple("Row", names, rename=True)


class ImplicitSession(ABC):
    """Implements ReceiveSession (dialects.connection), except what depends on the driver."""

    def __init__(self) -> None:
        self._depth = 0  # of transaction and savepoints
        self._is_doomed = self._is_guarded = False

    # --- of each driver

    @abstractmethod
    def _answer(self, query: Any, params: Params = None) -> tuple[list[Row], int]:
        """Execute; return the rows and the number of affected ones. Raises errors of ``dialects.errors``."""

    @abstractmethod
    def _end(self, is_guarded: bool) -> None:
        """Commit. ``is_guarded``: raises TransactionEndedByHandler if it is not the transaction of ``place_guard``."""

    @abstractmethod
    def _undo(self) -> None:
        """Roll back, whoever began the transaction."""

    @abstractmethod
    def _set_savepoint(self, name: str) -> None: ...

    @abstractmethod
    def _release_savepoint(self, name: str) -> None: ...

    @abstractmethod
    def _undo_savepoint(self, name: str) -> None: ...

    @abstractmethod
    def _set_guard(self) -> None: ...

    @property
    @abstractmethod
    def closed(self) -> bool: ...

    @property
    @abstractmethod
    def closed_locally(self) -> bool: ...

    @abstractmethod
    def close(self) -> None: ...

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
        if self._is_doomed:
            raise errors.DatabaseError(DOOMED)
        try:
            return self._answer(query, params)
        except BaseException:
            self._is_doomed = True
            raise

    def _dooming(self, work: Callable[..., _T], *args: Any) -> _T:
        """As ``_ask``: a failure dooms the transaction, up to the savepoint before it."""
        if self._is_doomed:
            raise errors.DatabaseError(DOOMED)
        try:
            return work(*args)
        except BaseException:
            self._is_doomed = True
            raise

    # --- transactions

    def transaction(self) -> AbstractContextManager[Any]:
        return _Savepoint(self) if self.in_transaction else _Transaction(self)

    def transaction_with(self, query: Any, params: Params = None) -> AbstractContextManager[list[Row]]:
        return _Transaction(self, (query, params))

    def commit_and_begin_with(self, query: Any, params: Params = None) -> None:
        return None

    def begin(self) -> None:
        self._depth, self._is_doomed, self._is_guarded = 1, False, False

    def commit(self) -> None:
        """Commit, or raise why nothing was committed."""
        try:
            self._insist()
            self._end(self._is_guarded)
        except BaseException:
            self.rollback()
            raise
        self._depth, self._is_guarded = 0, False

    def _insist(self) -> None:
        if self.closed_locally:
            raise errors.SessionClosedByHandler
        if self.closed:
            raise errors.DatabaseDown("the session was lost before the commit: nothing was committed")
        if not self.in_transaction:
            raise errors.TransactionEndedByHandler
        if self._is_doomed:
            raise errors.DatabaseError("a statement failed and was ignored: nothing can be committed")

    def begin_savepoint(self) -> None:
        self._dooming(self._set_savepoint, f"pgqueue_{self._depth}")
        self._depth += 1

    def end_savepoint(self) -> None:
        """Release the savepoint; if that fails, it stays, to be undone."""
        self._insist()
        self._dooming(self._release_savepoint, f"pgqueue_{self._depth - 1}")
        self._depth -= 1

    def undo_savepoint(self) -> None:
        """Roll back to the savepoint. After a server-side rollback there is none, and the transaction stays doomed."""
        if self.in_transaction and not self.closed:
            self._depth -= 1
            with suppress(errors.DatabaseError):
                self._undo_savepoint(f"pgqueue_{self._depth}")
                self._is_doomed = False

    def place_guard(self) -> None:
        if not self._is_guarded:
            self._dooming(self._set_guard)
            self._is_guarded = True

    def rollback(self) -> None:
        was_open, self._depth, self._is_doomed, self._is_guarded = self.in_transaction, 0, False, False
        if was_open and not self.closed:
            with suppress(errors.DatabaseError):
                self._undo()

    @property
    def in_transaction(self) -> bool:
        return self._depth > 0

    @property
    def has_failed(self) -> bool:
        return self._is_doomed

    def settings(self) -> None:
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Transaction(AbstractContextManager[Any]):
    """An outermost transaction. No generator: if garbage-collected, it would end a later transaction."""

    def __init__(self, session: ImplicitSession, first: Command | None = None):
        self._session, self._first = session, first

    def __enter__(self) -> Any:
        self._session.begin()
        if self._first is None:
            return self._session
        try:
            return self._session.all(*self._first)
        except BaseException:
            self._session.rollback()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._session.commit()
        else:
            self._session.rollback()


class _Savepoint(AbstractContextManager[Any]):
    def __init__(self, session: ImplicitSession):
        self._session = session

    def __enter__(self) -> ImplicitSession:
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

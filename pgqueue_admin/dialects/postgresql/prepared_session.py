"""The engine's session: executes our statements through libpq, all others through psycopg's cursors."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from pgqueue_admin.dialects import deadline, errors
from pgqueue_admin.dialects.connection import Params, Row
from pgqueue_admin.dialects.postgresql.answer_limit import PatientConnection
from pgqueue_admin.dialects.postgresql.pq_executor import COMMIT, PqExecutor
from pgqueue_admin.dialects.postgresql.query import Query
from pgqueue_admin.dialects.postgresql.session import RELEASE, Session, translate, translated

_RELEASED = Query([sql.SQL(RELEASE)])


class PreparedSession(Session):
    """A Connection (see dialects.connection)."""

    def __init__(self, raw: PatientConnection, seconds: float | None = None):
        """``seconds``: the statement timeout of the session, if any; a deadline can only shorten it."""
        super().__init__(raw)
        self._seconds = seconds
        self._patience = raw.patience
        self._libpq = PqExecutor(raw)
        self._is_over = False
        self._looks = bool(raw.read_only)
        self._took_writes = _takes_writes(raw)

    def _ask(self, query: Any, params: Params) -> Any:
        if _is_ours(query):
            return self._look([(query, params)])[0] if self._is_look() else self._libpq.ask(query, params)
        if self._is_look():
            with self.transaction():
                return self._ask(query, params)
        self._patience.what = query
        return super()._ask(query, params)

    def _is_look(self) -> bool:
        """Whether a statement now would be a read-only transaction of its own."""
        return self._looks and self.raw.pgconn.transaction_status == TransactionStatus.IDLE

    def _look(self, asked: list[tuple[Any, Params]]) -> list[Any]:
        """Execute in one round trip; once more if a table has changed since its plan was made."""
        try:
            return self._libpq.look(asked, _milliseconds_left(self._seconds))
        except psycopg.errors.FeatureNotSupported:
            self.rollback()
            return self._libpq.look(asked, _milliseconds_left(self._seconds))
        finally:
            self.rollback()

    def run(self, query: Any, params: Params = None) -> int:
        if self._looks or not _is_ours(query):
            return super().run(query, params)
        with translated:
            return self._libpq.run(query, params)

    def batch(self, asked: Iterable[tuple[Any, Params]]) -> list[list[Row]]:
        statements = list(asked)
        if not all(_is_ours(query) for query, _ in statements):  # ours would hang in the driver's pipeline
            with self.transaction():
                return [self.all(query, params) for query, params in statements]
        with translated:
            ask = self._look if self._is_look() else self._libpq.ask_all
            return [answer.fetchall() for answer in ask(statements)]

    def run_all(self, asked: Iterable[tuple[Any, Params]]) -> None:
        statements = list(asked)
        if len(statements) == 1:
            self.run(*statements[0])
        elif statements:
            with translated:
                self._libpq.ask_all(statements)

    def run_last(self, asked: Iterable[tuple[Any, Params]]) -> None:
        self._refuse_to_pretend()
        with translated:
            self._end_with(asked)
        self._is_over = True

    def _end_with(self, asked: Iterable[tuple[Any, Params]]) -> None:
        released = [(_RELEASED, None)] if self._is_guarded else []
        self._libpq.ask_all([*released, *asked, (COMMIT, None)])
        self._is_guarded = False

    def copy_in(self, query: Any, chunks: Iterable[bytes]) -> None:
        if not _is_ours(query):
            return super().copy_in(query, chunks)
        with translated:
            self._libpq.copy_in(query, chunks)

    def transaction(self) -> AbstractContextManager[Session]:
        if self.raw.pgconn.transaction_status == TransactionStatus.INTRANS:
            self._patience.what = b"savepoint"
            return super().transaction()
        return PreparedTransaction(self, self._begin)

    def _begin(self) -> Session:
        self._libpq.begin()
        if self._looks and (left := _milliseconds_left(self._seconds)) is not None:
            self._libpq.limit(left)
        return self

    def transaction_with(self, query: Any, params: Params = None) -> AbstractContextManager[list[Row]]:
        if not _is_ours(query):
            return super().transaction_with(query, params)
        return PreparedTransaction(self, lambda: self._libpq.begin_with(query, params).fetchall())

    def commit_and_begin_with(self, query: Any, params: Params = None) -> AbstractContextManager[list[Row]] | None:
        if self._is_over or not _is_ours(query):
            return None
        self._refuse_to_pretend()
        release = f"{RELEASE}; ".encode() if self._is_guarded else b""
        begun = self._libpq.commit_and_begin_with(release, query, params)
        self._is_over = begun is not None
        self._is_guarded &= begun is None
        return PreparedTransaction(self, lambda: begun().fetchall()) if begun else None

    def commit(self) -> None:
        is_over, self._is_over = self._is_over, False
        if is_over:
            return
        self._refuse_to_pretend()
        if self._is_guarded:
            return self._end_with([])
        self._libpq.say(b"commit")

    def is_closed_by_server(self) -> bool:
        """Also true if it could write at first and no longer can: a switch-over may have changed the server's role."""
        return not self._libpq.was_just_heard() and (
            super().is_closed_by_server() or self._took_writes > _takes_writes(self.raw)
        )

    def rollback(self) -> None:
        self._is_over = self._is_guarded = False
        if not self.raw.closed and self.raw.pgconn.transaction_status != TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                self._libpq.say(b"rollback")


T = TypeVar("T")


class PreparedTransaction(Generic[T]):
    """A block that ends with commit or rollback; no generator, whose cost every receive would pay."""

    __slots__ = ("_begin", "_session")

    def __init__(self, session: PreparedSession, begin: Callable[[], T]):
        self._session = session
        self._begin = begin

    def __enter__(self) -> T:
        try:
            return self._begin()
        except BaseException as error:
            self._undo(error)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            return self._undo(error)
        try:
            self._session.commit()
        except BaseException as refused:
            self._undo(refused)
            raise

    def _undo(self, error: BaseException) -> None:
        self._session.rollback()
        if isinstance(error, psycopg.Error):
            raise translate(error) from error


def _milliseconds_left(most: float | None) -> int | None:
    """Rest of the deadline, at most ``most``; None without a deadline. Raises TimedOut after it."""
    left = deadline.left()
    if left == 0:
        raise errors.TimedOut("All that a page may look at in its time has been asked.")
    if left == float("inf"):
        return None
    return max(1, round(min(left, most or left) * 1000))


def _takes_writes(raw: psycopg.Connection[Any]) -> bool:
    """The server's latest report, which comes with the answer that refuses a write; none before PostgreSQL 14."""
    return "on" not in map(raw.info.parameter_status, ("default_transaction_read_only", "in_hot_standby"))


def _is_ours(query: Any) -> bool:
    return isinstance(query, Query) and query.is_single

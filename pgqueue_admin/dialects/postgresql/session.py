"""An open psycopg session; it raises our errors for the driver's."""

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Any, Self

import psycopg
from psycopg import sql
from psycopg.pq import ConnStatus, PipelineStatus, TransactionStatus

from pgqueue_admin.dialects import errors
from pgqueue_admin.dialects.connection import Notification, Params, Row
from pgqueue_admin.dialects.postgresql import answer_limit, binary_copy, encodings, liveness
from pgqueue_admin.dialects.postgresql.query import never_none

_BY_SQLSTATE: dict[str, type[errors.DatabaseError]] = {
    "3F000": errors.SchemaMissing,
    "25006": errors.ReadOnly,
    "25P01": errors.TransactionEndedByHandler,  # our transaction no longer exists
    "3B001": errors.TransactionEndedByHandler,  # the savepoint no longer exists
    "25P03": errors.TransactionTooLong,
    "25P04": errors.TransactionTooLong,
    "40001": errors.Deadlock,
    "40P01": errors.Deadlock,
    "42501": errors.NotPermitted,
    "42P01": errors.TableMissing,
    "42703": errors.TableChanged,  # a column was dropped since its table was checked
    "42P06": errors.AlreadyExists,
    "42P07": errors.AlreadyExists,
    "42710": errors.AlreadyExists,
    "23505": errors.AlreadyExists,
    "55P03": errors.Locked,
    "57014": errors.TimedOut,
    "53300": errors.DatabaseDown,
    "57P01": errors.DatabaseDown,
    "57P02": errors.DatabaseDown,
    "57P03": errors.DatabaseDown,
    "57P05": errors.DatabaseDown,  # idle_session_timeout
}

_NOT_THERE = ("42P01", "42883", "42704")  # a table, a function or an operator, a type
_FUNCTION = re.compile(r"(\S+\([^()]*\)) ")  # in the server's message, in any language
GUARD, RELEASE = "savepoint pgqueue_guard", "release savepoint pgqueue_guard"


def translate(error: psycopg.Error) -> errors.DatabaseError:
    """Map the driver's error to ours. An OperationalError without SQLSTATE means a lost session."""
    if isinstance(error, answer_limit.NoAnswer):
        return errors.NoAnswer(str(error), seconds=error.seconds)
    if error.sqlstate in _NOT_THERE and error.diag.context:
        return errors.NameNotFound(f"{error}\n{_cure(error.diag.context)}", error.sqlstate)
    kind = _BY_SQLSTATE.get(error.sqlstate or "")
    if kind is errors.NotPermitted and error.diag.source_function == "check_enable_rls":
        kind = errors.NotLookedInto
    if kind is None:
        lost = error.sqlstate is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        kind = errors.DatabaseDown if lost or (error.sqlstate or "").startswith("08") else errors.DatabaseError
    if kind is errors.DatabaseDown and error.diag.severity_nonlocalized == "ERROR":
        kind = errors.DatabaseError  # the session lives: a trigger or a foreign table reports another server
    return kind(str(error), error.sqlstate)


def _cure(context: str) -> str:
    """``context``: the server's call stack of the error, innermost first."""
    found = _FUNCTION.search(context)
    function = found[1] if found else "that function"
    return (
        f"Name it in full in {function}, with its schema, or: "
        f"alter function {found[1] if found else '…'} set search_path = public, pg_temp"
    )


class ErrorTranslation:
    """Translates the driver's errors in a block. Stateless and no generator, because every statement runs in one."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, psycopg.Error):
            raise translate(error) from error


translated = ErrorTranslation()


class Session:
    """A Connection (see dialects.connection) over psycopg."""

    dialect: Any  # set by the dialect that makes it

    def __init__(self, raw: psycopg.Connection[Any]):
        self.raw = raw
        self._is_watched = self._has_farewell = self._is_guarded = False
        self._alive_at = time.monotonic()

    def _cursor(self) -> psycopg.Cursor[Any]:
        return self.raw.cursor()

    def _ask(self, query: Any, params: Params) -> psycopg.Cursor[Any]:
        given = never_none(query, params)
        try:
            return self._cursor().execute(query, given)
        except psycopg.errors.FeatureNotSupported:
            if not self._may_have_a_stale_plan():
                raise
        self.raw.execute("deallocate all")
        return self._cursor().execute(query, given)

    def _may_have_a_stale_plan(self) -> bool:
        """Whether to retry after a column changed its type: the driver keeps the stale plan until a rollback.

        Outside a transaction the statement can be retried; inside one, its rollback drops the plan.
        """
        pg, prepares = self.raw.pgconn, self.raw.prepare_threshold is not None
        is_alone = pg.pipeline_status == PipelineStatus.OFF and pg.transaction_status == TransactionStatus.IDLE
        return prepares and is_alone

    def all(self, query: Any, params: Params = None) -> list[Row]:
        with translated:
            return self._ask(query, params).fetchall()

    def one(self, query: Any, params: Params = None) -> Row | None:
        with translated:
            return self._ask(query, params).fetchone()

    def value(self, query: Any, params: Params = None) -> Any:
        row = self.one(query, params)
        return row[0] if row else None

    def run(self, query: Any, params: Params = None) -> int:
        with translated:
            return self._ask(query, params).rowcount

    def batch(self, asked: Iterable[tuple[Any, Params]]) -> list[list[Row]]:
        with translated:
            with self.raw.pipeline():
                # by cursors, also in subclasses: inside the driver's pipeline only the driver may wait
                cursors = [Session._ask(self, query, params) for query, params in asked]
            return [cursor.fetchall() for cursor in cursors]

    def run_all(self, asked: Iterable[tuple[Any, Params]]) -> None:
        statements = list(asked)
        with translated, self.raw.pipeline() if len(statements) > 1 else nullcontext():
            for query, params in statements:
                self._ask(query, params)

    def run_last(self, asked: Iterable[tuple[Any, Params]]) -> None:
        self.run_all(asked)

    def copy_rows(self, query: Any, rows: Iterable[binary_copy.Row]) -> None:
        encoding = self.raw.info.encoding  # of texts sent to the server, also in binary form
        if codec := encodings.codec(self.raw):
            rows = (
                (row_id, expires, encodings.fitted(headers, codec), body) for row_id, expires, headers, body in rows
            )
        self.copy_in(query, binary_copy.encoded(rows, "utf-8" if encoding == "ascii" else encoding))

    def copy_in(self, query: Any, chunks: Iterable[bytes]) -> None:
        with translated, self._cursor() as cursor, cursor.copy(query, never_none(query, None)) as copy:
            for chunk in chunks:
                copy.write(chunk)

    def transaction(self) -> AbstractContextManager["Session"]:
        return self._transaction()

    @contextmanager
    def _transaction(self) -> Iterator["Session"]:
        with translated, self._guarded(self.raw.transaction()):
            yield self
            self._refuse_to_pretend()

    def transaction_with(self, query: Any, params: Params = None) -> AbstractContextManager[list[Row]]:
        return self._transaction_with(query, params)

    def commit_and_begin_with(self, query: Any, params: Params = None) -> AbstractContextManager[list[Row]] | None:
        return None

    @contextmanager
    def _transaction_with(self, query: Any, params: Params) -> Iterator[list[Row]]:
        with translated, ExitStack() as transaction:
            with self.raw.pipeline():
                # raw.transaction() would wait for the begin
                transaction.enter_context(self._guarded(psycopg.Transaction(self.raw)))
                cursor = self._ask(query, params)
            yield cursor.fetchall()
            self._refuse_to_pretend()

    @contextmanager
    def _guarded(self, block: AbstractContextManager[Any]) -> Iterator[None]:
        """Wrap a block of the driver; the outermost one releases the guard."""
        is_outermost = not self.in_transaction
        try:
            with block:
                yield
                if is_outermost and self._is_guarded:
                    self.run(RELEASE)
        finally:
            self._is_guarded &= not is_outermost

    def place_guard(self) -> None:
        if not self._is_guarded:
            self.run(GUARD)
            self._is_guarded = True

    def begin_with(self, queries: Iterable[Any]) -> None:
        for query in queries:
            self.run(query)

    def end_with(self, queries: Iterable[Any]) -> None:
        self._refuse_to_pretend()
        was_guarded, self._is_guarded = self._is_guarded, False
        if was_guarded:
            self.run(RELEASE)
        for query in queries:
            self.run(query)

    def end_prepared(self, query: Any) -> None:
        self.run(query)

    def rollback(self) -> None:
        self._is_guarded = False
        if self.in_transaction:
            with suppress(psycopg.Error):
                self.raw.execute("rollback")

    def _refuse_to_pretend(self) -> None:
        """Raise instead of a commit that could not succeed: the session is lost, a statement failed and was ignored, or
        a handler ended the transaction."""
        if self.closed_locally:
            raise errors.SessionClosedByHandler
        if self.raw.closed:
            raise errors.DatabaseDown("the session was lost before the commit: nothing was committed")
        status = self.raw.pgconn.transaction_status
        if status == TransactionStatus.INERROR:
            raise errors.DatabaseError("a statement failed and was ignored: nothing can be committed", "25P02")
        if status == TransactionStatus.IDLE:
            raise errors.TransactionEndedByHandler(sqlstate="25P01")

    @property
    def in_transaction(self) -> bool:
        return self.raw.pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    @property
    def has_failed(self) -> bool:
        return self.raw.pgconn.transaction_status == TransactionStatus.INERROR

    def as_json(self, value: Any) -> str:
        return encodings.json_text(value, encodings.codec(self.raw))

    def disable_idle_timeout(self) -> None:
        self.run("select set_config(name, '0', false) from pg_settings where name = 'idle_session_timeout'")

    def listen(self, *channels: str) -> None:
        self.disable_idle_timeout()
        for channel in channels:
            self.run(sql.SQL("listen {}").format(sql.Identifier(channel)))

    def notify(self, channel: str, payload: str = "") -> None:
        self.run("select pg_catalog.pg_notify(%s, %s)", [channel, payload])

    def notifications(self, timeout: float) -> Iterator[Notification]:
        with translated:
            self._ask_whether_alive()
            for notify in self.raw.notifies(timeout=timeout, stop_after=1):
                yield Notification(notify.channel, notify.payload)
            for notify in self.raw.notifies(timeout=0):
                yield Notification(notify.channel, notify.payload)

    def _ask_whether_alive(self) -> None:
        """Probe the server: a listening session would never notice a lost connection."""
        if time.monotonic() - self._alive_at >= self.ask_every:
            self.run("")  # an empty query: the server answers, and counts no statement
            self._alive_at = time.monotonic()

    @property
    def ask_every(self) -> float:
        raw = self.raw
        return raw.patience.seconds / 2 if isinstance(raw, answer_limit.PatientConnection) else float("inf")

    def fileno(self) -> int:
        with translated:
            return self.raw.fileno()

    def settings(self) -> Any:
        return liveness.settings(self.raw, liveness.FIRST_SECONDS)

    def is_closed_by_server(self) -> bool:
        """Only libpq reads available data: poll() would release the GIL to all other threads."""
        if not self._is_watched:
            self._is_watched = True
            self.raw.add_notice_handler(self._noticed)
        pg = self.raw.pgconn
        try:
            pg.consume_input()
            pg.get_result()
        except psycopg.OperationalError:
            return True
        return self._has_farewell or pg.status != ConnStatus.OK

    def _noticed(self, said: psycopg.errors.Diagnostic) -> None:
        self._has_farewell |= said.severity_nonlocalized in ("FATAL", "PANIC")

    @property
    def closed(self) -> bool:
        return self.raw.closed

    @property
    def closed_locally(self) -> bool:
        return self.raw.closed and not self.raw.broken

    def close_if_busy(self) -> None:
        if self.raw.pgconn.transaction_status == TransactionStatus.ACTIVE:
            self.close()

    def close(self) -> None:
        self.raw.close()

    def abort(self) -> None:
        if not self.raw.closed:
            answer_limit.hang_up(self.raw)

    def lend(self, is_lent: bool) -> None:
        if isinstance(self.raw, answer_limit.PatientConnection):
            self.raw.patience.is_lent = is_lent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

"""The transaction of a trial: handlers' writes are rolled back, their sends are caught."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, ClassVar, Protocol

import django.db
from django.db import connections, transaction
from django.db.transaction import TransactionManagementError

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.connection import ReceiveSession
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage

# A PostgreSQL transaction that nobody with its session can commit.
LIMIT_SECONDS = 30  # per message


class TrialSession(Protocol):
    """A session."""

    def run(self, query: Any, params: Any = None) -> int: ...
    def value(self, query: Any, params: Any = None) -> Any: ...


class NoCommit:
    """Call ``prepare`` before a transaction, and ``close`` first in it.

    A commit then fails, and later statements of the session cannot write.
    """

    def __init__(self, session: TrialSession):
        self._session, self._sql = session, postgresql().trial
        self._number = ""

    def prepare(self) -> None:
        self._session.value(self._sql.session(), {"limit": str(LIMIT_SECONDS * 1000)})

    def close(self) -> None:
        """Raises if the role may not create temporary tables."""
        self._session.run(self._sql.may_write())
        self._session.run(self._sql.barrier())
        self._session.run(self._sql.close_barrier())
        self._number = self._session.value(self._sql.transaction())
        self._session.run(self._sql.mark())

    def is_same(self, has_failed: bool) -> bool:
        """Whether the open transaction is the one that was closed. ``has_failed``: it accepts no statements."""
        try:
            if has_failed:
                self._session.run(self._sql.back_to_mark())
            return bool(self._session.value(self._sql.transaction()) == self._number)
        except Exception:  # of any driver
            return False

    def check(self) -> None:
        """Raises what a commit would raise. Only the rollback may follow; no handler may run."""
        self._session.run(self._sql.open_barrier())
        self._session.run(self._sql.check_deferred())


class LeftTransaction(Exception):
    """A handler ended the transaction of its trial."""


class CannotTry(Exception):
    """Why a message is not tried, as a sentence."""


class TrialTransaction:
    """Implements transport.unit_of_work.UnitOfWork.

    Uses a new session per message, so that locks and settings of a handler end with it.
    """

    keeps_failed: ClassVar[bool] = True

    def __init__(self, endpoint: Endpoint):
        self._endpoint = endpoint
        self.caught: list[OutgoingMessage] = []

    @contextmanager
    def begin(self) -> Iterator["TrialTransaction"]:
        """Always rolls back. Raises LeftTransaction in place of the block's error; CannotTry."""
        outbox = self._endpoint.outbox
        with outbox.connect() if outbox else self._endpoint.connect() as session:
            self._session, self._no_commit = session, NoCommit(session)
            self._no_commit.prepare()
            try:
                with session.transaction():
                    yield from self._closed(session)
                    raise _RollBack
            except _RollBack:
                pass

    def _closed(self, session: Connection) -> Iterator["TrialTransaction"]:
        try:
            self._no_commit.close()
        except DatabaseError as error:
            raise CannotTry(f"Its transaction could not be made safe: {error}.") from error
        try:
            yield self
        finally:
            if self._was_left(session):
                raise LeftTransaction

    def _was_left(self, session: Connection) -> bool:
        """A lost session has committed nothing."""
        if session.closed:
            return False
        return not session.in_transaction or not self._no_commit.is_same(session.has_failed)

    def check(self) -> None:
        """Raises what a retry's commit would raise, as far as this database knows; or LeftTransaction."""
        if self._session.has_failed:
            raise DatabaseError("a statement failed and was ignored: nothing can be committed", "25P02")
        if self._was_left(self._session):
            raise LeftTransaction
        self._no_commit.check()

    @property
    def lends_session(self) -> bool:
        return self._endpoint.settings.transaction_mode != "none"

    def session_for_handlers(self) -> ReceiveSession | None:
        return self._session if self.lends_session else None

    def enlist(self, name: str) -> ReceiveSession:
        raise CannotTry(f"Its handler enlists the database {name}, which a trial does not cover.")

    def subscribers(self, topics: list[str]) -> list[Address]:
        return self._endpoint.subscriptions.subscribers(self._session, topics)

    def dispatch_now(self, outgoing: list[OutgoingMessage]) -> None:
        self.caught += outgoing

    def handled(self, outgoing: list[OutgoingMessage], after_commit: list[Callable[[], None]]) -> None:
        self.caught += outgoing  # nothing is committed

    def dispatch(self, outgoing: list[OutgoingMessage]) -> None:
        self.caught += outgoing

    def dispatch_with_receive(self, outgoing: list[OutgoingMessage]) -> None:
        self.caught += outgoing

    def to_give_up(self) -> AbstractContextManager[ReceiveSession]:
        return nullcontext(self._session)

    @property
    def lost(self) -> bool:
        return False

    @property
    def is_doomed(self) -> bool:
        return False

    def gives_back(self, error: Exception) -> bool:
        return False

    def was_handled(self, message: IncomingMessage) -> bool:
        return False

    def is_conflict(self, error: BaseException) -> bool:
        return False


class _RollBack(Exception):
    """Ends the block of a transaction to roll back."""


# Rolls back what a handler writes through Django's models outside its message's transaction, in each database of the
# settings.
CAUGHT = (
    "A statement of its models failed outside of transaction.atomic() and was caught. A retry goes on from there, as "
    "each statement commits by itself; in a trial's one transaction nothing goes on. What a retry does is not known."
)


class CannotTell(Exception):
    """Why the outcome of a retry is unknown, as a sentence."""


class DjangoRollback:
    """Turns the handler's ``transaction.atomic`` into savepoints; on_commit callbacks never run."""

    def __init__(self) -> None:
        self._closed: list[NoCommit] = []
        self._was_doomed = False

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Raises LeftTransaction in place of the block's error; CannotTry."""
        try:
            with ExitStack() as all_of_them:
                for connection in connections.all():
                    all_of_them.enter_context(self._rolled_back(connection))
                try:
                    yield
                finally:
                    self._was_doomed = _is_doomed()
        finally:
            connections.close_all()  # with all that the handler left in their sessions

    @contextmanager
    def _rolled_back(self, connection: Any) -> Iterator[None]:
        guard = NoCommit(_Session(connection)) if connection.vendor == "postgresql" else None
        connection.close()
        block = transaction.atomic(using=connection.alias)
        block._from_testcase = True  # as a test's: allows durable blocks inside
        try:
            if guard:
                guard.prepare()
            block.__enter__()
        except django.db.Error as error:
            raise CannotTry(f"The database {connection.alias} of the settings does not answer: {error}") from error
        try:
            if guard:
                self._close(guard, connection.alias)
            yield
        finally:
            was_left = guard is not None and _was_left(connection, guard)
            if connection.in_atomic_block:
                connection.set_rollback(True)
                block.__exit__(None, None, None)
            if was_left:
                raise LeftTransaction

    def _close(self, guard: NoCommit, alias: str) -> None:
        try:
            guard.close()
        except django.db.Error as error:
            raise CannotTry(f"The transaction on {alias} could not be made safe: {error}") from error
        self._closed.append(guard)

    def explains(self, error: BaseException) -> bool:
        """Whether the trial's single transaction caused the error: a retry would not raise it."""
        return isinstance(error, TransactionManagementError) and self._was_doomed

    def check(self) -> None:
        """Raises what commits would raise; CannotTell."""
        if _is_doomed():
            raise CannotTell(CAUGHT)
        for guard in self._closed:
            guard.check()


def _is_doomed() -> bool:
    return any(connection.needs_rollback for connection in connections.all(initialized_only=True))


def _was_left(connection: Any, guard: NoCommit) -> bool:
    """A lost session has committed nothing."""
    raw = connection.connection
    if raw is None or raw.closed:
        return False
    state = raw.info.transaction_status.name
    connection.set_rollback(False)  # else no query would be allowed
    return state == "IDLE" or not guard.is_same(state == "INERROR")


class _Session:
    """Implements ``TrialSession``."""

    def __init__(self, connection: Any):
        self._connection = connection

    def run(self, query: Any, params: Any = None) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute(query, params)
            return int(cursor.rowcount)

    def value(self, query: Any, params: Any = None) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute(query, params)
            row = cursor.fetchone()
            return row[0] if row else None

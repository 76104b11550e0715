"""The transaction that a message is tried in: what handlers write is rolled back, what they send is caught."""

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

# A transaction of PostgreSQL that cannot be committed, by whoever has its session.
LIMIT_SECONDS = 30  # a message


class TrialSession(Protocol):
    """Of a session."""

    def run(self, query: Any, params: Any = None) -> int: ...
    def value(self, query: Any, params: Any = None) -> Any: ...


class NoCommit:
    """``prepare`` before a transaction, ``close`` first in it.

    A commit then fails, and what its session does after that may not write.
    """

    def __init__(self, session: TrialSession):
        self._session, self._sql = session, postgresql().trial
        self._number = ""

    def prepare(self) -> None:
        self._session.value(self._sql.session(), {"limit": str(LIMIT_SECONDS * 1000)})

    def close(self) -> None:
        """Raises where the role may not make temporary tables."""
        self._session.run(self._sql.may_write())
        self._session.run(self._sql.barrier())
        self._session.run(self._sql.close_barrier())
        self._number = self._session.value(self._sql.transaction())
        self._session.run(self._sql.mark())

    def is_same(self, has_failed: bool) -> bool:
        """Whether the one under way is the transaction that was closed. ``has_failed``: it takes no statements."""
        try:
            if has_failed:
                self._session.run(self._sql.back_to_mark())
            return bool(self._session.value(self._sql.transaction()) == self._number)
        except Exception:  # of whichever driver
            return False

    def check(self) -> None:
        """Raises what a commit would raise. No handler runs after it: only the rollback is left."""
        self._session.run(self._sql.open_barrier())
        self._session.run(self._sql.check_deferred())


class LeftTransaction(Exception):
    """A handler ended the transaction that it was tried in."""


class CannotTry(Exception):
    """Why a message is not tried, as a sentence."""


class TrialTransaction:
    """Implements transport.unit_of_work.UnitOfWork.

    A new session for each message: what a handler leaves in it (locks, settings) is gone with it.
    """

    keeps_failed: ClassVar[bool] = True

    def __init__(self, endpoint: Endpoint):
        self._endpoint = endpoint
        self.caught: list[OutgoingMessage] = []

    @contextmanager
    def begin(self) -> Iterator["TrialTransaction"]:
        """Left in any way it is rolled back. Raises LeftTransaction over whatever the block raised, CannotTry."""
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
        """One whose session is gone has committed nothing."""
        if session.closed:
            return False
        return not session.in_transaction or not self._no_commit.is_same(session.has_failed)

    def check(self) -> None:
        """Raises what the commit of a retry would raise, as far as this database knows; or LeftTransaction."""
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
        self.caught += outgoing  # and nothing is committed

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
    """Ends the block of a transaction that is not to be committed."""


# What a handler writes through Django's models while it is tried, where they do not join its transaction: rolled back
# in each database of the settings.
CAUGHT = (
    "A statement of its models failed outside of transaction.atomic() and was caught. A retry goes on from there, as "
    "each statement commits by itself; in a trial's one transaction nothing goes on. What a retry does is not known."
)


class CannotTell(Exception):
    """Why it is not known what a retry does, as a sentence."""


class DjangoRollback:
    """``transaction.atomic`` of the handler is a savepoint then, and nothing is called on commit."""

    def __init__(self) -> None:
        self._closed: list[NoCommit] = []
        self._was_doomed = False

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Raises LeftTransaction over whatever the block raised, CannotTry."""
        try:
            with ExitStack() as all_of_them:
                for connection in connections.all():
                    all_of_them.enter_context(self._rolled_back(connection))
                try:
                    yield
                finally:
                    self._was_doomed = _is_doomed()
        finally:
            connections.close_all()  # with what the handler left in their sessions

    @contextmanager
    def _rolled_back(self, connection: Any) -> Iterator[None]:
        guard = NoCommit(_Session(connection)) if connection.vendor == "postgresql" else None
        connection.close()
        block = transaction.atomic(using=connection.alias)
        block._from_testcase = True  # as a test's: durable blocks may begin in it
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
        """Whether it was raised because of the one transaction that a trial has: a retry would not raise it."""
        return isinstance(error, TransactionManagementError) and self._was_doomed

    def check(self) -> None:
        """Raises what commits would raise, CannotTell."""
        if _is_doomed():
            raise CannotTell(CAUGHT)
        for guard in self._closed:
            guard.check()


def _is_doomed() -> bool:
    return any(connection.needs_rollback for connection in connections.all(initialized_only=True))


def _was_left(connection: Any, guard: NoCommit) -> bool:
    """One whose session is gone has committed nothing."""
    raw = connection.connection
    if raw is None or raw.closed:
        return False
    state = raw.info.transaction_status.name
    connection.set_rollback(False)  # or nothing could be asked
    return state == "IDLE" or not guard.is_same(state == "INERROR")


class _Session:
    """Implements ``Asked``."""

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

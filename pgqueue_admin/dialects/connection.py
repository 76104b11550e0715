"""Protocols of database sessions, implemented by each dialect.

Every dialect has ``Session``; messages are received in a ``ReceiveSession``. ``Connection`` is PostgreSQL's, which
also has NOTIFY and bulk load.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, Self

Params = Mapping[str, Any] | Sequence[Any] | None
Row = Any  # a named tuple whose fields are the statement's columns
Command = tuple[Any, Params]  # a store's statement and its parameters, for sessions of the same dialect


class Notification(NamedTuple):
    channel: str
    payload: str


class Session(Protocol):
    """One session, in UTC, autocommit unless inside ``transaction()``.

    Every method raises errors of ``dialects.errors`` only, never the driver's.
    """

    def all(self, query: Any, params: Params = None) -> list[Row]: ...
    def one(self, query: Any, params: Params = None) -> Row | None:
        """The first row, or None."""

    def value(self, query: Any, params: Params = None) -> Any:
        """The first column of the first row; None also without a row."""

    def run(self, query: Any, params: Params = None) -> int:
        """Execute; return the number of affected rows."""

    def run_all(self, asked: Iterable[Command]) -> None:
        """Execute statements without results in one transaction and, if possible, one round trip. The first error is
        raised, and all are undone.
        """

    def transaction(self) -> AbstractContextManager[Any]:
        """A transaction, or a savepoint inside one; an exception rolls it back.

        Else it is committed, or raises, e.g. if a failed statement inside was ignored.
        """

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, even a failed one."""

    @property
    def has_failed(self) -> bool:
        """Whether the open transaction accepts no more statements."""

    @property
    def closed(self) -> bool: ...
    def abort(self) -> None:
        """Break the connection, from any thread: the server rolls back, the session's user gets DatabaseDown."""

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...


class ReceiveSession(Session, Protocol):
    """A session in which messages are received, and which is lent to handlers."""

    def run_last(self, asked: Iterable[Command]) -> None:
        """As ``run_all``, at the end of a transaction, perhaps with its commit: execute nothing after it."""

    def transaction_with(self, query: Any, params: Params = None) -> AbstractContextManager[list[Row]]:
        """A transaction that begins with this statement, in one round trip, and yields its rows. Not nested."""

    def commit_and_begin_with(self, query: Any, params: Params = None) -> AbstractContextManager[list[Row]] | None:
        """Commit, and begin as ``transaction_with`` does, in one round trip. Execute nothing more in the ending block.

        Enter the result next: it yields the rows, or raises the statement's error. None: not possible, and nothing was
        committed.
        """

    def place_guard(self) -> None:
        """Make the end of this transaction fail if a handler ends it and begins another.

        Then its end raises TransactionEndedByHandler, and nothing is committed. One round trip; none if repeated.
        """

    def rollback(self) -> None:
        """Roll back the open transaction, whoever began it; no effect without one."""

    def is_closed_by_server(self) -> bool:
        """Whether the server closed the session or made it read-only, as far as the client knows without a round trip.

        Call it outside a transaction.
        """

    def settings(self) -> Any:
        """The session's settings, for comparison: code that a statement triggers may change them for good.

        One round trip; None without an answer within seconds. Call it outside a transaction.
        """

    @property
    def closed_locally(self) -> bool:
        """Whether this process closed it, not the server or a lost connection."""

    def lend(self, is_lent: bool) -> None:
        """Mark the session as lent to a handler; while lent, it has no answer timeout."""

    def close_if_busy(self) -> None:
        """Close a session whose last result was not fully read: it accepts no statement, not even a rollback."""


class TwoPhaseSession(ReceiveSession, Protocol):
    """A session whose transaction can be prepared; of a dialect with ``two_phase_commit``."""

    def begin_with(self, queries: Iterable[Any]) -> None:
        """Begin a transaction with these statements; ``end_with`` or the session's end ends it."""

    def end_with(self, queries: Iterable[Any]) -> None:
        """End the transaction with these statements instead of a commit. Raises as the end of a block does, e.g. if a
        handler ended it."""

    def end_prepared(self, query: Any) -> None:
        """End a prepared transaction of this or another session. Call it outside a transaction."""


class NotifySession(Session, Protocol):
    """A session that listens for notifications; of a dialect that ``supports_notify``."""

    def disable_idle_timeout(self) -> None:
        """Disable the server's idle session timeout, which a database may set: a listening session is idle."""

    def listen(self, *channels: str) -> None:
        """Listen, and disable the idle timeout."""

    def notify(self, channel: str, payload: str = "") -> None: ...
    def notifications(self, timeout: float) -> Iterator[Notification]:
        """Wait at most ``timeout`` seconds and yield notifications as soon as some arrive.

        Called repeatedly, it probes the server every ``ask_every`` seconds.
        """

    @property
    def ask_every(self) -> float:
        """Half of the answer timeout in seconds; infinite without one."""

    def fileno(self) -> int: ...


class Connection(TwoPhaseSession, NotifySession, Protocol):
    """A session of PostgreSQL."""

    raw: Any  # the driver's own connection, for code of the same dialect
    dialect: Any  # the Dialect that made it, whose statements and addresses it takes

    def batch(self, asked: Iterable[Command]) -> list[list[Row]]:
        """Execute statements in one round trip and one transaction. The first error is raised, and all are undone."""

    def copy_rows(self, query: Any, rows: Iterable[tuple[bytes, Any, str, bytes]]) -> None:
        """Load rows of a queue: id, expiry (as ``expiries`` returns it, or None), headers, body."""

    def copy_in(self, query: Any, chunks: Iterable[bytes]) -> None:
        """Load rows in the database's own bulk format; each chunk is sent while the next is made."""

    def as_json(self, value: Any) -> str:
        """The value as JSON text that this database accepts."""

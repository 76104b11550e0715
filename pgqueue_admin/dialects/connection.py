"""Protocols of database sessions, implemented by each dialect.

``Session`` is what every dialect has; ``ReceiveSession`` is one that messages are received in. ``Connection`` is
PostgreSQL's, which can NOTIFY and load in bulk besides.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, Self

Params = Mapping[str, Any] | Sequence[Any] | None
Row = Any  # a named tuple whose fields are the statement's columns
Command = tuple[Any, Params]  # a statement of a store and its parameters: for a session of the same dialect alone


class Notification(NamedTuple):
    channel: str
    payload: str


class Session(Protocol):
    """One session, in UTC, autocommit unless inside ``transaction()``.

    Every method raises errors of ``dialects.errors`` only, never the driver's.
    """

    def all(self, query: Any, params: Params = None) -> list[Row]: ...
    def one(self, query: Any, params: Params = None) -> Row | None:
        """The first row; None where there is none."""

    def value(self, query: Any, params: Params = None) -> Any:
        """The first column of the first row; None, too, where there is no row."""

    def run(self, query: Any, params: Params = None) -> int:
        """Execute; return how many rows were touched."""

    def run_all(self, asked: Iterable[Command]) -> None:
        """Many statements that answer nothing, in one transaction and, where it can be, one round trip; the first that
        fails raises, and none counts.
        """

    def transaction(self) -> AbstractContextManager[Any]:
        """A transaction, or a savepoint inside one; left by an exception, it is rolled back.

        Left without one it is committed, or raises: also where a failed statement inside was ignored.
        """

    @property
    def in_transaction(self) -> bool:
        """Also in one that has failed."""

    @property
    def has_failed(self) -> bool:
        """In a transaction that takes no more statements."""

    @property
    def closed(self) -> bool: ...
    def abort(self) -> None:
        """Break the session off from any thread: the server rolls back, whoever uses it gets DatabaseDown."""

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...


class ReceiveSession(Session, Protocol):
    """One that messages are received in, and that handlers are lent."""

    def run_last(self, asked: Iterable[Command]) -> None:
        """As ``run_all``, at the end of a transaction, perhaps together with its commit: ask nothing after it."""

    def transaction_with(self, query: Any, params: Params = None) -> AbstractContextManager[list[Row]]:
        """A transaction that begins with this statement, in one round trip; gives its rows. Not inside another."""

    def commit_and_begin_with(self, query: Any, params: Params = None) -> AbstractContextManager[list[Row]] | None:
        """Commit, and begin as ``transaction_with`` does, in one round trip; ask nothing else in the block that ends.

        To be entered next: that gives the rows, or raises why there are none. None: it cannot be done so, and nothing
        was committed.
        """

    def place_guard(self) -> None:
        """Notice, at the end of the transaction under way, that somebody ended it and began another meanwhile.

        Then its end raises EndedFromWithin, and nothing is committed. One round trip; asked again, none.
        """

    def rollback(self) -> None:
        """End the transaction under way, whoever began it; nothing where there is none."""

    def is_closed_by_server(self) -> bool:
        """Whether the server has ended it, or takes no more writes in it: as far as can be heard without a round trip.

        Not inside a transaction.
        """

    def settings(self) -> Any:
        """What it is set to, to be compared: what a statement sets off may change it for good. One round trip.

        None where it does not say so within seconds. Not inside a transaction.
        """

    @property
    def closed_locally(self) -> bool:
        """By somebody here: it was not lost."""

    def lend(self, is_lent: bool) -> None:
        """While somebody else asks in it, answers may take as long as they like, whatever limit ours have."""

    def close_if_busy(self) -> None:
        """Where an answer was not read to its end: no statement can be asked any more, not even a rollback."""


class TwoPhaseSession(ReceiveSession, Protocol):
    """One whose transaction may be prepared; of a dialect that has ``two_phase_commit``."""

    def begin_with(self, queries: Iterable[Any]) -> None:
        """Begin a transaction by these, to be ended by ``end_with``, or with the session."""

    def end_with(self, queries: Iterable[Any]) -> None:
        """End it so, without a commit. Raises where a block's end would: also where a handler has ended it."""

    def end_prepared(self, query: Any) -> None:
        """Outside of a transaction: end what this session or another has prepared."""


class NotifySession(Session, Protocol):
    """One that waits for others to tell of their commits; of a dialect that ``supports_notify``."""

    def disable_idle_timeout(self) -> None:
        """The server may not end it for being idle, as databases may be set to: it is one that waits for others."""

    def listen(self, *channels: str) -> None:
        """And disable the idle timeout."""

    def notify(self, channel: str, payload: str = "") -> None: ...
    def notifications(self, timeout: float) -> Iterator[Notification]:
        """Yield what arrives within ``timeout`` seconds, at once when something is there.

        Called again and again, it asks each ``ask_every`` seconds whether the server is still there.
        """

    @property
    def ask_every(self) -> float:
        """Half of what it waits for an answer at most; infinite where it waits for ever."""

    def fileno(self) -> int: ...


class Connection(TwoPhaseSession, NotifySession, Protocol):
    """A session of PostgreSQL."""

    raw: Any  # the driver's own connection, for code of the same dialect
    dialect: Any  # a Dialect: the one that made it, whose statements and addresses it takes

    def batch(self, asked: Iterable[Command]) -> list[list[Row]]:
        """Ask many statements in one round trip and one transaction. The first that fails raises, and none counts."""

    def copy_rows(self, query: Any, rows: Iterable[tuple[bytes, Any, str, bytes]]) -> None:
        """Load rows of a queue: id, when it expires (as ``expiries`` says it, or None), headers, body."""

    def copy_in(self, query: Any, chunks: Iterable[bytes]) -> None:
        """Load rows in the database's own bulk format, each chunk on its way while the next is made."""

    def as_json(self, value: Any) -> str:
        """As text that this database takes for its own JSON."""

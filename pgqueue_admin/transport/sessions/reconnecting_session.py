"""A database session that connects on first use and reconnects after a loss."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown, SessionClosedByHandler
from pgqueue_admin.transport.sessions.fork_safety import forgets_in_child

Connect = Callable[[], Connection]


class ReconnectingSession:
    """A session for one thread at a time; any thread may call ``abort``."""

    def __init__(self, connect: Connect):
        self._connect = connect
        self._session: Connection | None = None

    def get(self) -> Connection:
        """The session, opened if necessary. Raises DatabaseDown."""
        if self._session is None or self._session.closed:
            self._session = self._connect()
        return self._session

    def fresh(self) -> Connection:
        """As ``get``, at the begin of new work: replaces a session that the server has closed."""
        if self._session and not self._session.is_closed_by_server():
            return self._session
        self.close()
        return self.get()

    def held(self) -> Connection:
        """The session in use, whose transaction cannot continue in another. Raises DatabaseDown if it was lost,
        SessionClosedByHandler if its user has closed it.
        """
        if self._session and self._session.closed_locally:
            raise SessionClosedByHandler
        if self._session is None or self._session.closed:
            raise DatabaseDown("the session was lost, and its transaction with it: nothing was committed")
        return self._session

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        session = self.fresh()
        with session.transaction():
            yield session

    @property
    def lost(self) -> bool:
        return self._session is not None and self._session.closed and not self._session.closed_locally

    @property
    def has_failed(self) -> bool:
        """Whether its transaction accepts no more statements."""
        return self._session is not None and not self._session.closed and self._session.has_failed

    def abort(self) -> None:
        if self._session:
            self._session.abort()

    def close(self) -> None:
        if self._session:
            self._session.close()


class Sessions:
    """Sessions for sends from many threads, one per concurrent send."""

    def __init__(self, connect: Connect):
        self._connect = connect
        self.forget()
        forgets_in_child(self)

    def forget(self) -> None:
        self._idle: list[ReconnectingSession] = []

    def one(self) -> "PooledSession":
        """A session for a block. Entering raises DatabaseDown."""
        try:
            return PooledSession(self._idle.pop(), self._idle)
        except IndexError:
            return PooledSession(ReconnectingSession(self._connect), self._idle)

    def close(self) -> None:
        """Close idle sessions. Later sends open new ones."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()


class PooledSession:
    """A session that returns to the idle ones after the block."""

    __slots__ = ("_idle", "_session")

    def __init__(self, session: ReconnectingSession, idle: list[ReconnectingSession]):
        self._session = session
        self._idle = idle

    def __enter__(self) -> Connection:
        try:
            return self._session.fresh()
        except BaseException:
            self._idle.append(self._session)
            raise

    def __exit__(self, *exc: object) -> None:
        self._idle.append(self._session)

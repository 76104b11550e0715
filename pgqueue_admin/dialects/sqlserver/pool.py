"""Looking sessions kept open between uses (contract: dialects.base.Pool)."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pgqueue_admin.dialects import deadline
from pgqueue_admin.dialects.connect_breaker import ConnectBreaker
from pgqueue_admin.dialects.errors import DatabaseDown, NoAnswer
from pgqueue_admin.dialects.sqlserver.session import SQLServerSession

WAIT_SECONDS = 5.0  # for a session while all are lent
SILENT_SECONDS = 2.0  # a server that says nothing for so long is down
IDLE_SECONDS = 600.0


class SessionPool:
    """The session used last is lent first, so that those beyond need grow old and go; one that was lost is replaced."""

    def __init__(self, connect: Callable[[], SQLServerSession], max_size: int, answer_seconds: float | None):
        self._connect, self._answer_seconds = connect, answer_seconds
        self._breaker = ConnectBreaker(DatabaseDown, _told_again)
        self._room = threading.BoundedSemaphore(max_size)
        self._idle: deque[tuple[float, SQLServerSession]] = deque()
        self._closed = False

    @contextmanager
    def connection(self, answer_seconds: float | None = None) -> Iterator[SQLServerSession]:
        wait = min(WAIT_SECONDS, deadline.left())
        if not self._room.acquire(timeout=wait):
            raise DatabaseDown(f"every session was in use for {wait:.1g} s")
        try:
            session = self._idle_one() or self._breaker.attempt(self._opened)
            try:
                session.wait_at_most(answer_seconds or self._answer_seconds)
                yield session
            finally:
                self._take_back(session)
        finally:
            self._room.release()

    def close(self) -> None:
        """Those that are lent close when they come back."""
        self._closed = True
        self._drop_idle_since(float("inf"))

    def _opened(self) -> SQLServerSession:
        """Who says nothing at all is down, not slow."""
        try:
            return self._connect()
        except NoAnswer as error:
            raise DatabaseDown(error.detail) from error

    def _idle_one(self) -> SQLServerSession | None:
        while self._idle:
            try:
                session = self._idle.pop()[1]
            except IndexError:  # somebody else was faster
                return None
            if not session.is_closed_by_server():
                return session
            session.close()
        return None

    def _take_back(self, session: SQLServerSession) -> None:
        if self._closed or session.closed or session.in_transaction:
            session.close()
        else:
            self._idle.append((time.monotonic(), session))
        self._drop_idle_since(time.monotonic() - IDLE_SECONDS)

    def _drop_idle_since(self, instant: float) -> None:
        while self._idle and self._idle[0][0] < instant:
            try:
                self._idle.popleft()[1].close()
            except IndexError:
                return


def _told_again(said: str) -> DatabaseDown:
    """As the try before ended, whose words begin with the sentence."""
    return DatabaseDown(said.removeprefix(DatabaseDown().sentence))

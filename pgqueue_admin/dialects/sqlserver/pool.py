"""Monitoring sessions kept open between uses (contract: dialects.base.Pool)."""

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
SILENT_SECONDS = 2.0  # a server silent for so long is down
IDLE_SECONDS = 600.0


class SessionPool:
    """Lends the session used last first, so that surplus sessions age and are closed; replaces a lost one."""

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
        """Close the pool; lent sessions are closed on return."""
        self._closed = True
        self._drop_idle_since(float("inf"))

    def _opened(self) -> SQLServerSession:
        """Open a session. A server without any answer is down, not slow."""
        try:
            return self._connect()
        except NoAnswer as error:
            raise DatabaseDown(error.detail) from error

    def _idle_one(self) -> SQLServerSession | None:
        while self._idle:
            try:
                session = self._idle.pop()[1]
            except IndexError:  # another thread was faster
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
    """The error of the last attempt again, without doubling its sentence."""
    return DatabaseDown(said.removeprefix(DatabaseDown().sentence))

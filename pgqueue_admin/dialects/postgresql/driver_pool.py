"""A pool of the driver's sessions, with the methods of psycopg_pool that Django calls (docs/decisions/006)."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import psycopg

from pgqueue_admin.dialects.connect_breaker import ConnectBreaker
from pgqueue_admin.dialects.postgresql import answer_limit, liveness, session_settings
from pgqueue_admin.dialects.postgresql.liveness import Raw

log = logging.getLogger("pgqueue.sessions")
WAIT_SECONDS = 5.0  # for a session while all are lent
SILENT_SECONDS = 2.0  # a server silent for so long is down
IDLE_SECONDS = 600.0


def connect_with(params: dict[str, Any], configure: Callable[[Any], object]) -> Raw:
    """A session of the driver for Django; raises the driver's errors."""
    raw = liveness.first(answer_limit.PatientConnection.connect(**{**params, "autocommit": True}))
    answer_limit.limit(raw, liveness.FIRST_SECONDS)
    configure(raw)
    return session_settings.fit(raw)


class ConnectionPool:
    """Lends the session used last first, so that surplus sessions age and are closed.

    A session whose settings have changed since it was opened is not lent again.
    """

    def __init__(self, connect: Callable[[], Raw], max_size: int):
        self._connect = connect
        self._circuit = ConnectBreaker(psycopg.Error, psycopg.OperationalError)
        self._room = threading.BoundedSemaphore(max_size)
        self._idle: deque[tuple[float, Raw]] = deque()
        self._given: WeakKeyDictionary[Raw, session_settings.Given] = WeakKeyDictionary()
        self._closed = False

    def open(self) -> None:
        """Open the pool; sessions are opened on demand."""
        self._closed = False

    def getconn(self, wait: float = WAIT_SECONDS) -> Raw:
        """Borrow a session. Raises OperationalError, at once if the server refuses or is known to be unresponsive."""
        if not self._room.acquire(timeout=wait):
            raise psycopg.OperationalError(f"every session was in use for {wait:.1g} s")
        try:
            raw = self._idle_one() or self._circuit.attempt(self._opened)
        except BaseException:
            self._room.release()
            raise
        raw._pool = self
        return raw

    def putconn(self, raw: Raw) -> None:
        try:
            if self._closed or not liveness.is_at_rest(raw):
                raw.close()
            else:
                self._idle.append((time.monotonic(), raw))
            self._drop_idle_since(time.monotonic() - IDLE_SECONDS)
        finally:
            self._room.release()

    def close(self) -> None:
        """Close the pool; lent sessions are closed on return."""
        self._closed = True
        self._drop_idle_since(float("inf"))

    def _opened(self) -> Raw:
        raw = self._connect()
        settings = liveness.settings(raw, liveness.FIRST_SECONDS)
        if settings is None:
            raw.close()
            raise psycopg.OperationalError("the new session does not say what it is set to")
        self._given[raw] = settings
        return raw

    def _idle_one(self) -> Raw | None:
        while (raw := self._last_idle()) is not None:
            now = liveness.settings(raw, SILENT_SECONDS)
            changed = session_settings.differences(self._given[raw], now) if now else []
            if now and not changed:
                return raw
            raw.close()
            if not now:
                self._drop_idle_since(float("inf"))  # the others are lost, too, and each check would take its timeout
                return None
            log.warning("A session was closed: what it met had changed %s in it for good.", ", ".join(changed))
        return None

    def _last_idle(self) -> Raw | None:
        try:
            return self._idle.pop()[1]
        except IndexError:
            return None

    def _drop_idle_since(self, instant: float) -> None:
        while self._idle and self._idle[0][0] < instant:
            try:
                self._idle.popleft()[1].close()
            except IndexError:
                return

"""When the database does not play along: how long to wait, and when to say that it is serious (wire sheet 6)."""

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakSet

from pgqueue_admin.dialects.errors import Deadlock

log = logging.getLogger("pgqueue_admin.transport")

ARMED_SECONDS = 1.0
TRIGGERED_SECONDS = 10.0
SECONDS_TO_TRIGGER = 30.0


class Open(NamedTuple):
    """A breaker that nothing has succeeded behind for 30 s: since how many seconds, and what was said last."""

    what: str
    seconds: float
    error: str


class CircuitBreaker:
    """Armed by the first failure, triggered when nothing has succeeded for 30 s, disarmed by the first success."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic):
        self._what = what
        self._clock = clock
        self._lock = threading.Lock()
        self._armed_at: float | None = None
        self._error = ""
        self.triggered = False
        _all.add(self)

    def failed(self, error: BaseException) -> float:
        """Note a failure; return how many seconds to wait before the next attempt."""
        if isinstance(error, Deadlock):
            return 0
        with self._lock:
            self._error = str(error)
            if self._armed_at is None:
                self._armed_at = self._clock()
                log.warning("%s failed and is tried again each %g s: %s", self._what, ARMED_SECONDS, error)
            elif not self.triggered and self._lasted() >= SECONDS_TO_TRIGGER:
                self.triggered = True
                log.error("%s has failed for %.0f s, nothing is handled: %s", self._what, self._lasted(), error)
            return TRIGGERED_SECONDS if self.triggered else ARMED_SECONDS

    def succeeded(self) -> None:
        if self._armed_at is None:
            return
        with self._lock:
            if self._armed_at is not None:
                log.info("%s works again after %.0f s", self._what, self._lasted())
            self._armed_at, self.triggered = None, False

    def state(self) -> Open | None:
        """None while it is closed, or only armed."""
        with self._lock:
            return Open(self._what, self._lasted(), self._error) if self.triggered else None

    def _lasted(self) -> float:
        return self._clock() - (self._armed_at or 0)


_all: "WeakSet[CircuitBreaker]" = WeakSet()  # of this process: for whoever reports on it, not for the engine


def open_breakers() -> list[Open]:
    """Of every endpoint in this process."""
    return sorted(state for breaker in list(_all) if (state := breaker.state()))

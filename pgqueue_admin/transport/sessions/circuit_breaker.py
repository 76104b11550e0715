"""Circuit breaker and back-off for database errors (wire sheet 6)."""

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from pgqueue_admin.dialects.errors import Deadlock, NoAnswer
from pgqueue_admin.transport.failure import message_of

log = logging.getLogger("pgqueue_admin.transport")

ARMED_SECONDS = 1.0
TRIGGERED_SECONDS = 10.0
SECONDS_TO_TRIGGER = 30.0


class BreakerTrouble(NamedTuple):
    """A failing step behind a breaker: for how many seconds, the last error, and whether the breaker is open."""

    what: str
    seconds: float
    error: str
    triggered: bool


class CircuitBreaker:
    """Armed by the first failure, triggered after 30 s without success, disarmed by the first success."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic):
        self._what = what
        self._clock = clock
        self._lock = threading.Lock()
        self._armed_at: float | None = None
        self._error = ""
        self.triggered = False

    def failed(self, error: BaseException) -> float:
        """Record a failure; return the seconds until the next attempt."""
        if isinstance(error, Deadlock):
            return 0
        with self._lock:
            self._error = message_of(error)
            is_first = self._armed_at is None
            if self._armed_at is None:
                self._armed_at = self._clock() - _waited(error)
            if not self.triggered and self._lasted() >= SECONDS_TO_TRIGGER:
                self.triggered = True
                log.error("%s has failed for %.0f s, nothing is handled: %s", self._what, self._lasted(), error)
            elif is_first:
                log.warning("%s failed and is tried again each %g s: %s", self._what, ARMED_SECONDS, error)
            return TRIGGERED_SECONDS if self.triggered else ARMED_SECONDS

    def succeeded(self) -> None:
        if self._armed_at is None:
            return
        with self._lock:
            if self._armed_at is not None:
                log.info("%s works again after %.0f s", self._what, self._lasted())
            self._armed_at, self.triggered = None, False

    def trouble(self) -> BreakerTrouble | None:
        """The trouble; None while the breaker is closed."""
        with self._lock:
            if self._armed_at is None:
                return None
            return BreakerTrouble(self._what, self._lasted(), self._error, self.triggered)

    def _lasted(self) -> float:
        return self._clock() - (self._armed_at or 0)


def _waited(error: BaseException) -> float:
    """Seconds already waited: the failure began when the statement was sent."""
    return error.seconds if isinstance(error, NoAnswer) else 0.0


class CircuitBreakers:
    """The breakers of an endpoint, by what they watch; a new one at a restart replaces the old one."""

    def __init__(self) -> None:
        self._by_what: dict[str, CircuitBreaker] = {}

    def new(self, what: str) -> CircuitBreaker:
        self._by_what[what] = CircuitBreaker(what)
        return self._by_what[what]

    def troubles(self) -> list[BreakerTrouble]:
        """Troubles of all breakers that are not closed."""
        return sorted(trouble for breaker in list(self._by_what.values()) if (trouble := breaker.trouble()))

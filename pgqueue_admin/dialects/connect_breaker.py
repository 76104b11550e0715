"""Circuit breaker for connecting: while a server is unresponsive, one caller probes, all others fail at once."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

PAUSE = 1.0  # seconds between two attempts; a server that is back is noticed within it
SILENCE = 0.5  # seconds: an attempt that took longer was not refused

T = TypeVar("T")


class ConnectBreaker:
    """A refused attempt is cheap and repeated freely; one that waited is followed by a pause.

    ``failure``: the exception of a failed attempt; ``told``: makes the exception of all other callers from its text.
    """

    def __init__(self, failure: type[Exception], told: Callable[[str], Exception]) -> None:
        self._is_failure, self._told = failure, told
        self._lock = threading.Lock()
        self._failure = ""
        self._next_at = 0.0
        self._trying = False

    def attempt(self, connect: Callable[[], T]) -> T:
        if self._failure and not self._my_turn():
            raise self._told(self._failure)
        began = time.monotonic()
        try:
            made = connect()
        except self._is_failure as error:
            self._failed(str(error), time.monotonic() - began)
            raise
        except BaseException:
            self._trying = False
            raise
        self._failure, self._trying = "", False
        return made

    def _my_turn(self) -> bool:
        with self._lock:
            mine = not self._trying and time.monotonic() >= self._next_at
            self._trying = self._trying or mine
            return mine

    def _failed(self, why: str, took: float) -> None:
        with self._lock:
            self._failure, self._trying = why, False
            self._next_at = time.monotonic() + (PAUSE if took > SILENCE else 0)

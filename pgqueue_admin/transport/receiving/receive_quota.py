"""The receives that one peek allows: whoever is free starts the next, until there is none."""

import threading
from collections.abc import Callable


class ReceiveQuota:
    """At most ``most``; none once one found nothing, since whoever counted the rows was not alone (T13).

    Together they take at most ``messages``, where that is given (T17).
    """

    def __init__(
        self, changed: threading.Condition, most: int, unless: Callable[[], bool], messages: int | None = None
    ):
        self._changed = changed
        self._messages = messages
        self._most = most
        self._unless = unless
        self._started = self._answered = self._finished = 0
        self._took = self._looked = False
        self._is_over = False

    @property
    def left(self) -> int:
        """How many may still be started."""
        return 0 if self._is_over else self._most - self._started

    def start(self) -> bool:
        """Whether to receive once more; it counts as started then."""
        with self._changed:
            self._is_over = self._is_over or self._unless()
            if not self.left:
                return False
            self._started += 1
            return True

    def batch(self, size: int) -> int:
        """How many messages of ``size`` the one that was just started may take."""
        with self._changed:
            if self._messages is None:
                return size
            taken = max(1, min(size, self._messages))
            self._messages -= taken
            return taken

    def answered(self, found: bool, took: bool = False, looked: bool = True) -> None:
        """A receive statement is through; its handler may just begin. ``found``: as much as it asked for; ``looked``:
        whether it was answered by the database, and did not fail.
        """
        with self._changed:
            self._answered += 1
            self._looked = self._looked or looked
            self._took = self._took or took
            self._is_over = self._is_over or not found
            self._tell()

    def finished(self) -> None:
        with self._changed:
            self._finished += 1
            self._tell()

    def _tell(self) -> None:
        """Nobody waits for less than the last."""
        if not self.left:
            self._changed.notify_all()

    @property
    def in_vain(self) -> bool:
        """Something was there, by the peek, and nothing was got, although nothing failed."""
        return self._looked and not self._took

    def wait(self, for_handlers: bool, unless: Callable[[], bool]) -> None:
        """Until all that were started have answered, or until their handlers are done too (T12)."""
        with self._changed:
            self._changed.wait_for(lambda: unless() or (not self.left and self._started == self._done(for_handlers)))

    def _done(self, for_handlers: bool) -> int:
        return self._finished if for_handlers else self._answered

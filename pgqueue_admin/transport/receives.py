"""The receives that one peek started: how many have answered, and whether to start more."""

import threading
from collections.abc import Callable


class Receives:
    """Over as soon as one receive found nothing: whoever counted the rows was not alone (T13)."""

    def __init__(self, changed: threading.Condition):
        self._changed = changed
        self._started = self._answered = self._finished = 0
        self._took = False
        self.over = False

    def started(self) -> None:
        with self._changed:
            self._started += 1

    def answered(self, found: bool, took: bool = False) -> None:
        """A receive statement is through; its handler may just begin. ``found``: as much as it asked for."""
        with self._changed:
            self._answered += 1
            self._took = self._took or took
            self.over = self.over or not found
            self._changed.notify_all()

    def finished(self) -> None:
        with self._changed:
            self._finished += 1
            self._changed.notify_all()

    @property
    def in_vain(self) -> bool:
        """Something was there, by the peek, and nothing was got."""
        return self._answered > 0 and not self._took

    def wait(self, for_handlers: bool, unless: Callable[[], bool]) -> None:
        """Until all started receives have answered, or until their handlers are done too (T12)."""
        with self._changed:
            self._changed.wait_for(lambda: unless() or self._started == self._done(for_handlers))

    def _done(self, for_handlers: bool) -> int:
        return self._finished if for_handlers else self._answered

"""State that the threads of a message pump share: signals, receive quota, back-off, single-receive fallback."""

import logging
import threading
from collections.abc import Callable


# What the threads of one endpoint tell each other: look again, stop.
class Signals:
    """``changed`` is the one condition that receiver, slots and batches wait on."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._stopping = False
        self._woken = False

    def stopping(self) -> bool:
        return self._stopping

    def stop(self) -> None:
        self._stopping = True
        self.wake()

    def wake(self) -> None:
        """Peek now: a message was put back, settings changed, or somebody knows that a message has come."""
        with self.changed:
            self._woken = True
            self.changed.notify_all()

    def looking(self) -> None:
        """What somebody woke us for until now is seen by the peek that follows."""
        with self.changed:
            self._woken = False

    def rest(self, seconds: float) -> None:
        """The peek loop's pause: until the time is over or somebody wakes it."""
        with self.changed:
            self.changed.wait_for(lambda: self._stopping or self._woken, seconds)
            self._woken = False

    def hold(self, seconds: float) -> None:
        """A slot's pause after trouble: only stopping cuts it short."""
        with self.changed:
            self.changed.wait_for(self.stopping, seconds)


# The receives that one peek allows: whoever is free starts the next, until there is none.
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


# Peeks that see messages which no receive then gets: once is a race, again and again something keeps them.
log = logging.getLogger("pgqueue_admin.transport")

_FIRST_SECONDS = 0.02


class EmptyReceiveBackoff:
    """Straight back to the peek after the first (T13); then 20, 40, 80 ms … up to the peek delay."""

    def __init__(self, name: str):
        self._name = name
        self._times = 0
        self._is_told = False

    def after(self, receives: ReceiveQuota, most: float) -> float:
        """How long to rest before the next peek."""
        self._times = self._times + 1 if receives.in_vain else 0
        self._is_told = self._is_told and self._times > 0
        if self._times < 2:
            return 0
        rest = min(most, _FIRST_SECONDS * 2.0 ** min(self._times - 2, 30))
        if rest == most and not self._is_told:
            self._is_told = True
            log.warning(
                "Endpoint %s sees messages in its queue and cannot take them, %d times now: look for a trigger or a "
                "row policy on the table that keeps rows from being deleted",
                self._name,
                self._times,
            )
        return rest


# After a batch that could not be committed its messages are received one by one: so the one at fault is found.
class SingleReceiveFallback:
    """How many of the next receives take a single message."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = 0

    def after(self, messages: int) -> None:
        with self._lock:
            self._left = max(self._left, messages)

    def is_next(self) -> bool:
        """Counts the receive that it is asked for."""
        if not self._left:
            return False
        with self._lock:
            self._left = max(0, self._left - 1)
            return True

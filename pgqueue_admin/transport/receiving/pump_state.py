"""State that the threads of a message pump share: signals, receive quota, back-off, single-receive fallback."""

import logging
import threading
from collections.abc import Callable


class Signals:
    """Signals between the threads of one pump: peek again, stop. All wait on the condition ``changed``."""

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
        """Peek now: a message returned or arrived, or settings changed."""
        with self.changed:
            self._woken = True
            self.changed.notify_all()

    def looking(self) -> None:
        """Clear earlier wake-ups: the following peek covers them."""
        with self.changed:
            self._woken = False

    def rest(self, seconds: float) -> None:
        """Pause the peek loop until the time is over or ``wake``."""
        with self.changed:
            self.changed.wait_for(lambda: self._stopping or self._woken, seconds)
            self._woken = False

    def hold(self, seconds: float) -> None:
        """Pause a slot after trouble; only stopping shortens it."""
        with self.changed:
            self.changed.wait_for(self.stopping, seconds)


class ReceiveQuota:
    """The receives that one peek allows; any free slot starts the next.

    At most ``most``; none after one found nothing, since other processes receive, too (T13). Together they take at most
    ``messages``, if given (T17).
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
        """Number of receives that can still be started."""
        return 0 if self._is_over else self._most - self._started

    def start(self) -> bool:
        """Whether to receive once more; counts it as started."""
        with self._changed:
            self._is_over = self._is_over or self._unless()
            if not self.left:
                return False
            self._started += 1
            return True

    def batch(self, size: int) -> int:
        """Number of messages, up to ``size``, that the receive just started may take."""
        with self._changed:
            if self._messages is None:
                return size
            taken = max(1, min(size, self._messages))
            self._messages -= taken
            return taken

    def answered(self, found: bool, took: bool = False, looked: bool = True) -> None:
        """A receive statement has returned; its handlers begin. ``found``: as many rows as requested; ``looked``: the
        database answered without error.
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
        """Notify after the last receive only: nobody waits for others."""
        if not self.left:
            self._changed.notify_all()

    @property
    def in_vain(self) -> bool:
        """Whether no receive got a message that the peek had seen, without any failure."""
        return self._looked and not self._took

    def wait(self, for_handlers: bool, unless: Callable[[], bool]) -> None:
        """Wait until all started receives have answered, or also their handlers are done (T12)."""
        with self._changed:
            self._changed.wait_for(lambda: unless() or (not self.left and self._started == self._done(for_handlers)))

    def _done(self, for_handlers: bool) -> int:
        return self._finished if for_handlers else self._answered


log = logging.getLogger("pgqueue_admin.transport")

_FIRST_SECONDS = 0.02


class EmptyReceiveBackoff:
    """Back-off after peeks whose receives got nothing. Once is a race: peek at once (T13). Repeatedly, something keeps
    the messages: 20, 40, 80 ms … up to the peek delay."""

    def __init__(self, name: str):
        self._name = name
        self._times = 0
        self._is_told = False

    def after(self, receives: ReceiveQuota, most: float) -> float:
        """Seconds until the next peek."""
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


class SingleReceiveFallback:
    """Number of next receives that take a single message: after a failed batch, to find the message at fault."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = 0

    def after(self, messages: int) -> None:
        with self._lock:
            self._left = max(self._left, messages)

    def is_next(self) -> bool:
        """Whether the next receive is single; counts that receive."""
        if not self._left:
            return False
        with self._lock:
            self._left = max(0, self._left - 1)
            return True

"""A pipe that ends a wait: written by another thread or by the shutdown signal."""

import os
import select
import signal
from contextlib import suppress
from math import ceil
from types import FrameType
from typing import Protocol


class HasFileno(Protocol):
    def fileno(self) -> int: ...


class WakeupPipe:
    def __init__(self) -> None:
        self._read, self.write_fd = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self.write_fd, False)

    def set(self) -> None:
        with suppress(BlockingIOError):  # full: the waiting thread is about to wake
            os.write(self.write_fd, b"\0")

    def fileno(self) -> int:
        return self._read

    def wait(self, seconds: float | None, *others: HasFileno) -> None:
        """Return when set, when one of the others is readable, or after the timeout."""
        poll = select.poll()  # select() allows no descriptor above 1023, and handlers may open that many
        for each in (self, *others):
            poll.register(each, select.POLLIN)
        poll.poll(None if seconds is None else max(0, ceil(seconds * 1000)))
        with suppress(BlockingIOError):
            os.read(self._read, 4096)


# The request to end one of our processes.
class ShutdownSignal:
    """Create it in the main thread. No Event: a signal handler must not take a lock that its own thread may hold."""

    def __init__(self) -> None:
        self.asked = False
        self._waker = WakeupPipe()
        signal.set_wakeup_fd(self._waker.write_fd, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._heard)

    def ask(self) -> None:
        """Callable from any thread."""
        self.asked = True
        self._waker.set()

    def wait(self, seconds: float | None = None, *others: HasFileno) -> bool:
        """Wait at most this long, or until one of the others is readable; return whether the process shall end."""
        if not self.asked:
            self._waker.wait(seconds, *others)
        return self.asked

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.asked = True

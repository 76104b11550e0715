"""A pipe that ends a wait: set from another thread or by a signal."""

import os
import select
from contextlib import suppress
from math import ceil
from typing import Protocol


class HasFileno(Protocol):
    def fileno(self) -> int: ...


class WakeupPipe:
    def __init__(self) -> None:
        self._read, self.write_fd = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self.write_fd, False)

    def set(self) -> None:
        with suppress(BlockingIOError):  # full: whoever waits is about to wake
            os.write(self.write_fd, b"\0")

    def fileno(self) -> int:
        return self._read

    def wait(self, seconds: float | None, *others: HasFileno) -> None:
        """Return when set, when one of the others has something to read, or after so many seconds."""
        poll = select.poll()  # select() takes no descriptor above 1023, and a handler may have as many open
        for each in (self, *others):
            poll.register(each, select.POLLIN)
        poll.poll(None if seconds is None else max(0, ceil(seconds * 1000)))
        with suppress(BlockingIOError):
            os.read(self._read, 4096)

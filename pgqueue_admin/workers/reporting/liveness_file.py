"""A liveness counter in a file: the supervisor detects a hung process without the database.

A hung process (stopped, or stuck in a call) has not ended, so nothing else would show that it does nothing.
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pgqueue_admin.formatting.durations import plain
from pgqueue_admin.workers.reporting import process_identity, run_directory
from pgqueue_admin.workers.reporting.process_identity import ProcessIdentity

LONGEST_LOOK = 2.0  # seconds counted per look: a delayed observer has seen nothing in between
LONGEST_START = 120.0  # seconds until the first beat: a start imports much, and all may start at once
EVERY = 1.0
NOTHING = 0


class LivenessFile:
    """This process's counter. Call ``beat`` once per turn, from the working thread."""

    def __init__(self) -> None:
        self._count = 0
        self._file: int | None = None

    def beat(self) -> None:
        """Write the counter. On a full disk only the file's time changes, so that a healthy process does not end."""
        self._count += 1
        with suppress(OSError):
            if self._file is None:
                self._file = os.open(path(process_identity.mine()), os.O_WRONLY | os.O_CREAT, 0o600)
            self._turn(self._file)

    def _turn(self, file: int) -> None:
        try:
            os.pwrite(file, b"%020d" % self._count, 0)  # updates its time, too
        except OSError:
            os.utime(file)


def keep_beating() -> None:
    """Beat from a thread of its own, for a process whose turns may take any time.

    Stops when the whole process hangs: stopped, or in native code that never releases the interpreter. Also when the
    main thread ends: another non-daemon thread would keep an ended process for ever.
    """

    mine = LivenessFile()

    def beat() -> None:
        while threading.main_thread().is_alive():
            mine.beat()
            time.sleep(EVERY)

    threading.Thread(target=beat, name="pulse", daemon=True).start()


class ProcessSilence:
    """How long a process has not changed its counter."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic):
        self._monotonic = monotonic
        self._shown, self._looked = NOTHING, monotonic()
        self._seconds = 0.0

    def look(self, shown: int) -> float:
        """Seconds for which ``shown``, as read by ``of``, has not changed."""
        now = self._monotonic()
        between, self._looked = min(now - self._looked, LONGEST_LOOK), now
        self._seconds = self._seconds + between if shown == self._shown else 0.0
        self._shown = shown
        return self._seconds

    def broken(self, process: ProcessIdentity, after: float) -> str:
        """``it showed no sign of life for 60 s``, or "". ``after``: seconds of silence allowed."""
        shown = of(process)
        most = after if shown else max(after, LONGEST_START)
        return f"it showed no sign of life for {plain(most)}" if self.look(shown) > most else ""


def of(process: ProcessIdentity) -> int:
    """When it last wrote its counter, in nanoseconds; NOTHING without a file."""
    try:
        return path(process).stat().st_mtime_ns
    except OSError:
        return NOTHING


def forget(process: ProcessIdentity) -> None:
    with suppress(OSError):  # a read-only disk; a later sweep finds the file
        path(process).unlink(missing_ok=True)


def path(process: ProcessIdentity) -> Path:
    return run_directory.folder("run") / f"{process.pid}-{process.start_ticks}.pulse"

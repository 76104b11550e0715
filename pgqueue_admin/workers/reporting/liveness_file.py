"""A liveness counter in a file: the supervisor sees a hung process without the database.

A process that hangs (stopped, or stuck in a call) has not ended, so nothing else would tell that it does nothing.
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

LONGEST_LOOK = 2.0  # seconds between two looks that are counted: who was held up itself has seen nothing
LONGEST_START = 120.0  # seconds until the first sign: a start imports much, and all may start at once
EVERY = 1.0
NOTHING = 0


class LivenessFile:
    """Of this process. ``beat`` once a turn, from the thread whose work it is."""

    def __init__(self) -> None:
        self._count = 0
        self._file: int | None = None

    def beat(self) -> None:
        """A disk that takes nothing must not end who is well: the time of a file needs no room there."""
        self._count += 1
        with suppress(OSError):
            if self._file is None:
                self._file = os.open(path(process_identity.mine()), os.O_WRONLY | os.O_CREAT, 0o600)
            self._turn(self._file)

    def _turn(self, file: int) -> None:
        try:
            os.pwrite(file, b"%020d" % self._count, 0)  # its time changes, too
        except OSError:
            os.utime(file)


def keep_beating() -> None:
    """In a thread of its own, for a process whose turns may take as long as they like.

    It falls silent when the process as a whole does: stopped, or in native code that never lets the interpreter go on.
    And when its main thread has ended: a thread of somebody's that is no daemon keeps an ended process for ever.
    """

    mine = LivenessFile()

    def beat() -> None:
        while threading.main_thread().is_alive():
            mine.beat()
            time.sleep(EVERY)

    threading.Thread(target=beat, name="pulse", daemon=True).start()


class ProcessSilence:
    """For how long a process has not turned its counter."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic):
        self._monotonic = monotonic
        self._shown, self._looked = NOTHING, monotonic()
        self._seconds = 0.0

    def look(self, shown: int) -> float:
        """For how many seconds ``shown``, as ``of`` reads it, has been the same."""
        now = self._monotonic()
        between, self._looked = min(now - self._looked, LONGEST_LOOK), now
        self._seconds = self._seconds + between if shown == self._shown else 0.0
        self._shown = shown
        return self._seconds

    def broken(self, process: ProcessIdentity, after: float) -> str:
        """``it showed no sign of life for 60 s``; empty while it may live. ``after``: seconds that it may be silent."""
        shown = of(process)
        most = after if shown else max(after, LONGEST_START)
        return f"it showed no sign of life for {plain(most)}" if self.look(shown) > most else ""


def of(process: ProcessIdentity) -> int:
    """What it shows now, which is when it last turned its counter; NOTHING where it shows nothing."""
    try:
        return path(process).stat().st_mtime_ns
    except OSError:
        return NOTHING


def forget(process: ProcessIdentity) -> None:
    with suppress(OSError):  # a disk that takes no writes; a later sweep finds the file
        path(process).unlink(missing_ok=True)


def path(process: ProcessIdentity) -> Path:
    return run_directory.folder("run") / f"{process.pid}-{process.start_ticks}.pulse"

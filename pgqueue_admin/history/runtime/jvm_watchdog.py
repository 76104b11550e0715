"""Watchdog of the JVM: asks it each second, and ends one that hangs."""

import logging
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

from pgqueue_admin.history.runtime import java
from pgqueue_admin.osproc import idle_cgroup
from pgqueue_admin.osproc.process_tree import children, family

log = logging.getLogger(__name__)
EVERY = 1.0  # seconds from one look to the next
UP = 300  # looks until its first answer: a cold machine needs a tenth of them
LOOKS = 300  # in a row without one, from then on; a long pause of its memory is a few
PATIENT = 60  # of them, with nothing but processors that nobody else wants
_STARTED_BY_SPARK = b"_PYSPARK_DRIVER_CONN_INFO_PATH="  # in the environment of Java, and of the script before it


class JvmSilence:
    """Looks are counted, not time: where this process gets no processor, or the machine sleeps, nothing is held against
    Java, which gets none either."""

    def __init__(self) -> None:
        self.looks, self._most = 0, UP

    def is_too_long(self, is_answered: bool) -> bool:
        """Told of each look. One that collects its garbage is given a share of a machine that is full."""
        if is_answered:
            if self.looks >= PATIENT:
                idle_cgroup.stand_back()
            self.looks, self._most = 0, LOOKS
        else:
            self.looks += 1
            if self.looks == PATIENT:
                idle_cgroup.insist()
        return self.looks >= self._most


class JvmWatchdog:
    """Of this process's Java, until both end."""

    def __init__(self) -> None:
        self._answered = threading.Event()
        for work in (self._ask, self._look):
            threading.Thread(target=work, name="hung", daemon=True).start()

    def _ask(self) -> None:
        """Waits for as long as Java is silent, hence a thread of its own. One that has ended is found by java.check."""
        while java.ended() is None:
            with suppress(Exception):
                if (gateway := java.gateway()) is not None:
                    gateway.jvm.System.nanoTime()
                    self._answered.set()
            time.sleep(EVERY)

    def _look(self) -> None:
        silence = JvmSilence()
        while not silence.is_too_long(self._answered.wait(EVERY)):
            self._answered.clear()
        end(f"Spark's Java has not answered for {silence.looks * EVERY:.0f} s: it is ended.")


def end(why: str) -> None:
    """Java, with all that it started; who waits for it is told, and this process ends (java.check)."""
    log.error("%s", why)
    java.is_silent.set()
    for pid in _started_by_spark():
        for each in reversed(list(family(pid))):  # a script that waits for Java, workers that wait for their Java
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)


def _started_by_spark() -> list[int]:
    """Children of this process, those that make an archive of classes apart; none where /proc does not tell."""
    found = []
    for pid in children(os.getpid()):
        with suppress(OSError):  # it has ended meanwhile
            if _STARTED_BY_SPARK in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return found

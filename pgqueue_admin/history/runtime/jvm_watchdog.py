"""Watchdog of the JVM: calls it each second, and kills one that hangs."""

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
EVERY = 1.0  # seconds between two calls
UP = 300  # checks until the first answer: a cold machine needs a tenth of them
LOOKS = 300  # consecutive unanswered checks after that; a long garbage collection takes a few
PATIENT = 60  # of them on idle processors only
_STARTED_BY_SPARK = b"_PYSPARK_DRIVER_CONN_INFO_PATH="  # in the environment of Java, and of the script that starts it


class JvmSilence:
    """Counts unanswered checks, not time: while this process has no processor, or the machine sleeps, Java has none."""

    def __init__(self) -> None:
        self.looks, self._most = 0, UP

    def is_too_long(self, is_answered: bool) -> bool:
        """Record one check. After PATIENT unanswered ones, Java gets a full processor share to collect its garbage."""
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
    """Watches this process's Java until both end."""

    def __init__(self) -> None:
        self._answered = threading.Event()
        for work in (self._ask, self._look):
            threading.Thread(target=work, name="hung", daemon=True).start()

    def _ask(self) -> None:
        """Blocks while Java is silent, hence a thread of its own. ``java.check`` finds a Java that has ended."""
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
    """Kill Java and all that it started. Calls waiting for it fail, and this process ends (``java.check``)."""
    log.error("%s", why)
    java.is_silent.set()
    for pid in _started_by_spark():
        for each in reversed(list(family(pid))):  # a script waiting for Java, workers waiting for theirs
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)


def _started_by_spark() -> list[int]:
    """Children of this process except the builder of the class archive; empty if /proc shows none."""
    found = []
    for pid in children(os.getpid()):
        with suppress(OSError):  # it has ended meanwhile
            if _STARTED_BY_SPARK in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return found

"""CPU affinity of background work: leaves one processor to other programs while they are busy.

Priorities (``low_priority``, ``idle_cgroup``) are not enough. A program that preempts the work still finds the caches
full of its data; and the servers that it reads from have normal priority: they answer as fast as it reads.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pgqueue_admin.osproc.process_tree import seconds_of, threads

BUSY = 0.1  # of one processor, used by others; 500 messages a second take a fifth
LEAST = 0.5  # seconds: a shorter measurement is meaningless at a hundred ticks a second
AGE = 30.0  # seconds that a measurement is valid during work
PATIENT = 60.0  # seconds after which one piece of work takes the processors left to others, too
_STAT = Path("/proc/stat")
_TICK = os.sysconf("SC_CLK_TCK")


class _Used(NamedTuple):
    """Processor time in seconds: when it was read, the use of each processor until then, and our share of it."""

    at: float
    of_each: dict[int, float]
    by_us: float


class CpuShare:
    """Processors of this process and its children. It measures others at rest: during work, its servers are busy."""

    def __init__(self) -> None:
        self._all = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
        self._rests = self._used()
        self._looked_at = time.monotonic()
        self._works_since: float | None = None
        self._left: int | None = None  # to others

    def rest(self) -> None:
        """Begin to measure others: the work has stopped."""
        self._rests, self._works_since = self._used(), None

    def look(self) -> None:
        """End the measurement before work: leave the processor that others used most, or take all."""
        then, now = self._rests, self._used()
        self._works_since = now.at
        if now.at - then.at >= LEAST:
            used = {each: seconds - then.of_each.get(each, 0.0) for each, seconds in now.of_each.items()}
            others = sum(used.values()) - (now.by_us - then.by_us)
            busy = others / (now.at - then.at) > BUSY and len(used) > 1
            self._leave(max(used, key=used.__getitem__) if busy else None)
            self._looked_at = now.at

    def are_others_busy(self) -> bool:
        """Whether a processor is left to others. Call before each piece of work; measures anew after AGE."""
        if time.monotonic() >= self._looked_at + AGE:
            self.rest()
            time.sleep(LEAST)
            self.look()
        self._works_since = time.monotonic()
        return self._left is not None

    def insist(self) -> None:
        """Take all processors if a piece of work takes long, so that it ends. May be called from any thread."""
        since = self._works_since
        if since is not None and time.monotonic() >= since + PATIENT:
            self._leave(None)

    def _leave(self, one: int | None) -> None:
        if one != self._left:  # later children inherit it
            self._left = one
            self._use(self._all - {one})

    def _used(self) -> _Used:
        return _Used(time.monotonic(), _seconds_of_each(self._all), seconds_of(os.getpid()))

    def _use(self, wanted: set[int]) -> None:
        for _ in range(2):  # a thread may start another before its own affinity is set
            for thread in threads(os.getpid()):
                with suppress(OSError):  # it has ended
                    os.sched_setaffinity(thread, wanted)


def _seconds_of_each(processors: set[int]) -> dict[int, float]:
    """Use of each processor by all programs since boot; empty if the system does not report it."""
    try:
        lines = [line.split() for line in _STAT.read_text().splitlines()]
    except OSError:
        return {}
    named = {f"cpu{each}": each for each in processors}
    return {named[name]: _busy(counts) for name, *counts in lines if name in named}


def _busy(ticks: list[str]) -> float:
    """Seconds of all counters but idle, iowait and steal."""
    return sum(map(int, (*ticks[:3], *ticks[5:7]))) / _TICK

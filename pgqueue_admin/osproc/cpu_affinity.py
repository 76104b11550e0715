"""CPU affinity of background work: leaves one processor to others while they are busy.

Who is put over it at once (``low_priority``, ``idle_cgroup``) still finds the caches full of its data; and the servers
that it asks for rows do not go last themselves: they answer as fast as it takes in.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pgqueue_admin.osproc.process_tree import seconds_of, threads

BUSY = 0.1  # of one processor that others use; 500 messages a second take a fifth
LEAST = 0.5  # seconds: what is shorter says nothing, at a hundred ticks a second
AGE = 30.0  # seconds that a look is worth, amid work
PATIENT = 60.0  # seconds that one piece of work does without the processors that are left to others
_STAT = Path("/proc/stat")
_TICK = os.sysconf("SC_CLK_TCK")


class _Used(NamedTuple):
    """In seconds: when, what was used of each processor until then, and what of that by us."""

    at: float
    of_each: dict[int, float]
    by_us: float


class CpuShare:
    """Of this process and all it has started. It looks at others while it rests: amid work those it asks are busy."""

    def __init__(self) -> None:
        self._all = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
        self._rests = self._used()
        self._looked_at = time.monotonic()
        self._works_since: float | None = None
        self._left: int | None = None  # to others

    def rest(self) -> None:
        """From now on it asks nothing of anybody."""
        self._rests, self._works_since = self._used(), None

    def look(self) -> None:
        """Its rest is over: leave the one to others that they used most meanwhile, or take all."""
        then, now = self._rests, self._used()
        self._works_since = now.at
        if now.at - then.at >= LEAST:
            used = {each: seconds - then.of_each.get(each, 0.0) for each, seconds in now.of_each.items()}
            others = sum(used.values()) - (now.by_us - then.by_us)
            busy = others / (now.at - then.at) > BUSY and len(used) > 1
            self._leave(max(used, key=used.__getitem__) if busy else None)
            self._looked_at = now.at

    def are_others_busy(self) -> bool:
        """Asked before each piece of work: where the last look is old, it rests now, for as long as one takes."""
        if time.monotonic() >= self._looked_at + AGE:
            self.rest()
            time.sleep(LEAST)
            self.look()
        self._works_since = time.monotonic()
        return self._left is not None

    def insist(self) -> None:
        """From any thread: it takes all where its work takes long, so that it ends; who is at work may have moved."""
        since = self._works_since
        if since is not None and time.monotonic() >= since + PATIENT:
            self._leave(None)

    def _leave(self, one: int | None) -> None:
        if one != self._left:  # what is started later begins as who started it
            self._left = one
            self._use(self._all - {one})

    def _used(self) -> _Used:
        return _Used(time.monotonic(), _seconds_of_each(self._all), seconds_of(os.getpid()))

    def _use(self, wanted: set[int]) -> None:
        for _ in range(2):  # a thread may start another before its own turn comes
            for thread in threads(os.getpid()):
                with suppress(OSError):  # it has ended
                    os.sched_setaffinity(thread, wanted)


def _seconds_of_each(processors: set[int]) -> dict[int, float]:
    """What was used of them since the machine started, by whomever; nothing where the system does not tell."""
    try:
        lines = [line.split() for line in _STAT.read_text().splitlines()]
    except OSError:
        return {}
    named = {f"cpu{each}": each for each in processors}
    return {named[name]: _busy(counts) for name, *counts in lines if name in named}


def _busy(ticks: list[str]) -> float:
    """Seconds: all but idle, iowait and stolen."""
    return sum(map(int, (*ticks[:3], *ticks[5:7]))) / _TICK

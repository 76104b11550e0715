"""Which processors a process may use whose work can wait: all of them, or all but one while others are at work.

Who is put over it at once (priority.py, idle_group.py) still finds the caches full of its data; and the servers that it
asks for rows do not go last themselves: they answer as fast as it takes in.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pgqueue_admin.embedded.family import seconds_of, threads

BUSY = 0.1  # of one processor that others use; 500 messages a second take a fifth
LEAST = 0.5  # seconds: what is shorter says nothing, at a hundred ticks a second
AGE = 30.0  # seconds that a look is worth, amid work
_STAT = Path("/proc/stat")
_TICK = os.sysconf("SC_CLK_TCK")


class _Used(NamedTuple):
    at: float
    by_all: float
    by_us: float


class Processors:
    """Of this process and all it has started. It looks at others while it rests: amid work those it asks are busy."""

    def __init__(self) -> None:
        self._all = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
        self._rests = self._used()
        self._looked_at = time.monotonic()
        self._are_others_busy = False

    def rest(self) -> None:
        """From now on it asks nothing of anybody."""
        self._rests = self._used()

    def look(self) -> None:
        """At what others used since it rests; and leave one to them, or take all."""
        then, now = self._rests, self._used()
        if now.at - then.at >= LEAST:
            others = (now.by_all - then.by_all) - (now.by_us - then.by_us)
            self._judge(others / (now.at - then.at) > BUSY)
            self._looked_at = now.at

    def _judge(self, are_busy: bool) -> None:
        if are_busy != self._are_others_busy:  # what is started later begins as who started it
            self._are_others_busy = are_busy
            self._use(all_but_one(self._all) if are_busy else self._all)

    def are_others_busy(self) -> bool:
        """For whoever goes on without a rest: where the last look is old, it rests now, for as long as one takes."""
        if time.monotonic() >= self._looked_at + AGE:
            self.rest()
            time.sleep(LEAST)
            self.look()
        return self._are_others_busy

    def _used(self) -> _Used:
        return _Used(time.monotonic(), _seconds_of_all(self._all), seconds_of(os.getpid()))

    def _use(self, wanted: set[int]) -> None:
        for _ in range(2):  # a thread may start another before its own turn comes
            for thread in threads(os.getpid()):
                with suppress(OSError):  # it has ended
                    os.sched_setaffinity(thread, wanted)


def all_but_one(processors: set[int]) -> set[int]:
    """The first is left to others; a machine with one has no other."""
    return set(sorted(processors)[1:]) or processors


def _seconds_of_all(processors: set[int]) -> float:
    """What was used of them since the machine started, by whomever; nothing where the system does not tell."""
    try:
        lines = [line.split() for line in _STAT.read_text().splitlines()]
    except OSError:
        return 0.0
    ours = [line[1:] for line in lines if line[0].removeprefix("cpu") in map(str, processors)]
    return sum(sum(map(int, (*of[:3], *of[5:7]))) for of in ours) / _TICK  # all but idle, iowait and stolen

"""Child processes and threads of a process, read from /proc."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    found: list[int] = []
    for told in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # that thread has ended
            found += map(int, told.read_text().split())
    return found


def family(pid: int) -> Iterator[int]:
    """The process and its descendants, the process first."""
    yield pid
    for child in children(pid):
        yield from family(child)


def threads(pid: int) -> list[int]:
    """Threads of the process and its descendants."""
    found: list[int] = []
    for each in family(pid):
        with suppress(OSError):
            found += map(int, os.listdir(f"/proc/{each}/task"))
    return found


def seconds_of(pid: int) -> float:
    """Processor time of the family in seconds, ended children included once their parent has reaped them."""
    return sum(map(_seconds, family(pid)))


def stat(pid: int) -> list[str]:
    """The fields of proc_pid_stat(5) from the third on, its state. Raises OSError."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()  # a program's name may contain any character


def _seconds(pid: int) -> float:
    try:
        return sum(map(int, stat(pid)[11:15])) / _TICK  # utime, stime, and both of reaped children
    except OSError:
        return 0.0

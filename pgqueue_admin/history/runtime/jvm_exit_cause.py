"""What Spark's Java says on its standard error: passed on as it comes, its last lines kept for when it ends."""

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

_KEPT = 60  # lines: an error with its causes
_IN_A_TRACE = ("\tat ", "\t... ", "Suppressed: ", "#\n")
_NOTHING = ("WARNING: Using incubator modules",)
_lines: deque[str] = deque(maxlen=_KEPT)


@contextmanager
def heard() -> Iterator[None]:
    """Whoever is started meanwhile is heard for as long as it lives."""
    _lines.clear()
    ours = os.dup(2)
    reads, writes = os.pipe()
    os.dup2(writes, 2)
    os.close(writes)
    threading.Thread(target=_pass_on, args=(reads, ours), name="java's stderr", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(ours, 2)  # the pipe ends with the last who was started


def _pass_on(reads: int, on_to: int) -> None:
    with os.fdopen(reads, "rb") as said, os.fdopen(on_to, "wb", buffering=0) as stderr:
        for line in said:
            stderr.write(line)
            _lines.append(line.decode(errors="replace"))


def fatal() -> str:
    """Why a Java that ran has ended, where it says so; what else it said may be old, and is no cause."""
    ends = [line.strip("# \n") for line in list(_lines) if "OutOfMemoryError" in line or line.startswith("# ")]
    return (ends or [""])[0]


def cause() -> str:
    """Of a start that failed the line that says most; empty if nothing was said."""
    told = [line.strip() for line in list(_lines) if line.strip() and not line.startswith((*_IN_A_TRACE, *_NOTHING))]
    found = [line for line in told if line.startswith("Caused by: ")] or [
        line for line in told if "Exception" in line or "Error" in line
    ]
    return (found or told or [""])[-1].removeprefix("Caused by: ").lstrip("# ")

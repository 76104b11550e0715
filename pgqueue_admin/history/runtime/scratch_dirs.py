"""Where a driver and its Java leave what they need only while they run: libraries, shuffles, what sorting spills."""

import fcntl
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

_PREFIX = "driver-"


@cache
def folder(scratch: Path) -> Path:
    """This process's until it ends, however it ends and however often it starts Spark; those of drivers that have ended
    go.

    Below ``scratch`` and not in /tmp: there nothing may be executed on many machines, and nobody would clean up.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    with (scratch / "drivers.lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)  # else another driver could take the new one for one that is over
        for other in scratch.glob(f"{_PREFIX}*"):
            if not _is_held(other):
                shutil.rmtree(other, ignore_errors=True)
        mine = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=scratch))
        fcntl.flock(os.open(mine, os.O_RDONLY), fcntl.LOCK_EX)  # never closed
    return mine


def _is_held(place: Path) -> bool:
    """By a process that lives: the kernel lets go of a lock whatever ends its owner."""
    looked_at = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(looked_at, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(looked_at)
    return False

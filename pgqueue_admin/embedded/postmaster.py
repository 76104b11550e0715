"""What postmaster.pid says: who runs a cluster, and whether it takes connections yet."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_GRACE = 60  # a postmaster whose parent died is shutting down: checkpoint included


def pid(data: Path) -> int | None:
    """The process that runs this cluster now; None for a lock file that was left behind."""
    try:
        number = int((data / "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0])
        # the pid may have been given to another process since; a postmaster works in its data folder
        return number if os.readlink(f"/proc/{number}/cwd") == str(data) else None
    except (OSError, ValueError):
        return None


def is_ready(data: Path, child: int) -> bool:
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return len(lines) > 7 and lines[0] == str(child) and lines[7].strip() == "ready"


def give_way(data: Path) -> None:
    """End a postmaster that somebody who was killed left running, and remove a stale lock file."""
    deadline = time.monotonic() + _GRACE
    while (running := pid(data)) and time.monotonic() < deadline:
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(running, signal.SIGINT)
        time.sleep(0.1)
    if not pid(data):
        (data / "postmaster.pid").unlink(missing_ok=True)

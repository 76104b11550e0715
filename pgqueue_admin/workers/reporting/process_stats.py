"""What a process says of itself: its memory and which code it runs."""

import os
from functools import cache
from pathlib import Path
from typing import Any

from pgqueue_admin import __version__
from pgqueue_admin.workers.reporting.code_version import commit

LOG = "PGQUEUE_LOG"  # set for a process whose output goes to a file
_PAGE = os.sysconf("SC_PAGE_SIZE")


def memory_bytes(pid: int | str = "self") -> int:
    """Resident memory now, not its highest; 0 for a process that is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0


@cache
def code_version() -> str:
    """``PGQUEUE_CODE_VERSION``, else the commit that was checked out when this process started, else our version."""
    return os.environ.get("PGQUEUE_CODE_VERSION") or commit(Path(__file__)) or __version__


def facts() -> dict[str, Any]:
    """What every process says of itself, whatever it is for."""
    log = os.environ.get(LOG, "")
    return {"memory_bytes": memory_bytes(), "code_version": code_version()} | ({"log": log} if log else {})

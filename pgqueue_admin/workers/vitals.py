"""What a process says of itself: its memory and which code it runs."""

import os
from functools import cache
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def memory_bytes(pid: int | str = "self") -> int:
    """Resident memory now, not its highest; 0 for a process that is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0


@cache
def code_version() -> str:
    """``CODE_VERSION`` where a deployment sets it, else the checked-out commit, as it was when this process began."""
    return os.environ.get("CODE_VERSION") or _commit(Path(__file__).resolve().parents[2] / ".git")


def _commit(git: Path) -> str:
    try:
        head = (git / "HEAD").read_text().strip()
        named = git / head.removeprefix("ref: ")
        return (named.read_text() if head.startswith("ref: ") else head).strip()[:8]
    except OSError:
        return ""

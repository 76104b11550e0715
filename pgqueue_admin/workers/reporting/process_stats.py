"""Memory and code version of a process."""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from pgqueue_admin import __version__

# Code version of a process: set by the deployment, else each package's version or commit.
LONGEST = 64


def of_modules(names: Iterable[str]) -> str:
    """``billing 1f0c22ab, shop 4.12.0`` for the packages of these modules, as first queried."""
    if said := os.environ.get("PGQUEUE_CODE_VERSION"):
        return said[:LONGEST]
    tops = sorted({name.partition(".")[0] for name in names})
    return ", ".join(f"{top} {version}" for top in tops if (version := _of_package(top)))[:LONGEST]


@cache
def _of_package(top: str) -> str:
    file = getattr(sys.modules.get(top), "__file__", None)
    return (commit(Path(file)) if file else "") or _installed(top)


def _installed(top: str) -> str:
    for distribution in metadata.packages_distributions().get(top, []):
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(distribution)
    return ""


def commit(file: Path) -> str:
    """Eight digits of the commit checked out around ``file``; empty without a checkout."""
    for folder in file.resolve().parents:
        if folder.name == "site-packages":
            return ""
        if (folder / ".git").exists():
            return _head(folder / ".git")[:8]
    return ""


def _head(git: Path) -> str:
    try:
        if git.is_file():  # a worktree, or a submodule
            git = git.parent / git.read_text().partition("gitdir: ")[2].strip()
        head = (git / "HEAD").read_text().strip()
        return _named(git, head.removeprefix("ref: ")) if head.startswith("ref: ") else head
    except OSError:
        return ""


def _named(git: Path, name: str) -> str:
    shared = git / (git / "commondir").read_text().strip() if (git / "commondir").exists() else git
    if (shared / name).exists():
        return (shared / name).read_text().strip()
    packed = (line.split(" ", 1) for line in (shared / "packed-refs").read_text().splitlines() if " " in line)
    return next((found for found, ref in packed if ref == name), "")


LOG = "PGQUEUE_LOG"  # set for a process that logs to a file
_PAGE = os.sysconf("SC_PAGE_SIZE")


def memory_bytes(pid: int | str = "self") -> int:
    """Resident memory now, not its peak; 0 if the process is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0


@cache
def code_version() -> str:
    """``PGQUEUE_CODE_VERSION``, else the commit checked out when this process started, else our version."""
    return os.environ.get("PGQUEUE_CODE_VERSION") or commit(Path(__file__)) or __version__


def facts() -> dict[str, Any]:
    """The columns that every process reports."""
    log = os.environ.get(LOG, "")
    return {"memory_bytes": memory_bytes(), "code_version": code_version()} | ({"log": log} if log else {})

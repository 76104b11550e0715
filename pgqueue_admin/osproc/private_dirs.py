"""Makes our folders private (0700): logs, mails and history hold messages."""

from collections.abc import Container
from contextlib import suppress
from pathlib import Path

_PASSED_THROUGH = 0o711  # by PostgreSQL's account, where we are root; nobody else can tell what is in it


def close(var: Path, but: Container[Path] = ()) -> None:
    """``var`` and each folder in it, ``but`` these. What lies in a closed folder needs no mode of its own.

    Only taken away: what somebody closed further stays so, and a folder of another owner as it is.
    """
    var.mkdir(parents=True, exist_ok=True)
    _take_away(var, _PASSED_THROUGH)
    for each in var.iterdir():
        if each.is_dir() and not each.is_symlink() and each not in but:
            _take_away(each, 0o700)


def _take_away(folder: Path, most: int) -> None:
    with suppress(PermissionError):
        folder.chmod(folder.stat().st_mode & most)

"""Makes our folders private (0700): logs, mails and history hold messages."""

from collections.abc import Container
from contextlib import suppress
from pathlib import Path

_PASSED_THROUGH = 0o711  # PostgreSQL's account passes through if we are root; no other account can list it


def close(var: Path, but: Container[Path] = ()) -> None:
    """Close ``var`` and each folder in it except ``but``. Files in a closed folder need no mode of their own.

    Rights are only removed: a stricter mode stays, and so does a folder of another owner.
    """
    var.mkdir(parents=True, exist_ok=True)
    _take_away(var, _PASSED_THROUGH)
    for each in var.iterdir():
        if each.is_dir() and not each.is_symlink() and each not in but:
            _take_away(each, 0o700)


def _take_away(folder: Path, most: int) -> None:
    with suppress(PermissionError):
        folder.chmod(folder.stat().st_mode & most)

"""Where a cluster is kept: in the wanted folder, or elsewhere if the server's account cannot enter that."""

import fcntl
import hashlib
import os
import shutil
from pathlib import Path

from pgqueue_admin.embedded.errors import ServerFailed
from pgqueue_admin.embedded.os_account import OsAccount

OUTSIDE = Path("/var/lib/pgqueue-admin")  # only root can write in /var/lib, so no other account can have planted it
_marks: dict[Path, int] = {}  # open and locked while this process lives, so that others can tell


def home(wanted: Path, account: OsAccount) -> Path:
    """Create and return the cluster's folder: ``wanted``, or its substitute below OUTSIDE."""
    wanted.mkdir(parents=True, exist_ok=True)
    if account.uid is None:
        return wanted
    account.own(wanted)
    if account.may_enter(wanted):
        return wanted
    folder = _made(outside(wanted), account)
    _note_owner(folder, wanted)
    return folder


def outside(wanted: Path) -> Path:
    name = hashlib.sha256(os.fsencode(wanted.resolve())).hexdigest()[:12]
    return OUTSIDE / f"{wanted.resolve().parent.parent.name}-{name}"


def remove(wanted: Path) -> list[Path]:
    """Delete both possible homes; return those that existed."""
    gone = [place for place in (wanted, outside(wanted)) if place.exists()]
    for place in gone:
        shutil.rmtree(place)
    _remove_mark(_mark(outside(wanted)))
    if outside(wanted) in gone and not any(OUTSIDE.iterdir()):
        OUTSIDE.rmdir()
    return gone


def _made(folder: Path, account: OsAccount) -> Path:
    for made in (OUTSIDE, folder):
        made.mkdir(exist_ok=True)
        made.chmod(0o755)  # whatever the umask is
    account.own(folder)
    if not account.may_enter(folder):
        raise ServerFailed(f"The account {account.name} can enter neither this folder nor {folder}: open one of them.")
    return folder


def _note_owner(folder: Path, wanted: Path) -> None:
    """Lock the mark, then write which folder ``folder`` stands for: a mark not locked yet is still empty."""
    mark = _mark(folder)
    if mark not in _marks:
        _marks[mark] = os.open(mark, os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(_marks[mark], fcntl.LOCK_SH)
    mark.write_text(str(wanted.resolve()))


def _mark(folder: Path) -> Path:
    """The file that names the wanted folder."""
    return folder.with_name(f"{folder.name}.of")


def _remove_mark(mark: Path) -> None:
    mark.unlink(missing_ok=True)
    if mark in _marks:
        os.close(_marks.pop(mark))

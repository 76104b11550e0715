"""Where a cluster is kept: in the folder asked for, or outside it when the server's account cannot enter there."""

import hashlib
import os
import shutil
from pathlib import Path

from pgqueue_admin.embedded.account import Account
from pgqueue_admin.embedded.errors import ServerFailed

_OUTSIDE = Path("/var/lib/pgqueue-admin")  # only root writes in /var/lib, so nobody can have put something there


def home(wanted: Path, account: Account) -> Path:
    """``wanted``, or the folder outside that stands for it. Makes the folder."""
    wanted.mkdir(parents=True, exist_ok=True)
    if account.uid is None:
        return wanted
    account.own(wanted)
    return wanted if account.may_enter(wanted) else _made(outside(wanted), account)


def outside(wanted: Path) -> Path:
    name = hashlib.sha256(os.fsencode(wanted.resolve())).hexdigest()[:12]
    return _OUTSIDE / f"{wanted.resolve().parent.parent.name}-{name}"


def remove(wanted: Path) -> list[Path]:
    """Delete both possible homes; say which were there."""
    gone = [place for place in (wanted, outside(wanted)) if place.exists()]
    for place in gone:
        shutil.rmtree(place)
    if outside(wanted) in gone and not any(_OUTSIDE.iterdir()):
        _OUTSIDE.rmdir()
    return gone


def _made(folder: Path, account: Account) -> Path:
    for made in (_OUTSIDE, folder):
        made.mkdir(exist_ok=True)
        made.chmod(0o755)  # whatever the umask is
    account.own(folder)
    if not account.may_enter(folder):
        raise ServerFailed(f"The account {account.name} can enter neither this folder nor {folder}: open one of them.")
    return folder

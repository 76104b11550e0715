"""Paths of files that processes write: logs in var/log, messages in flight in var/run."""

import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from django.conf import settings

from pgqueue_admin.workers.reporting.process_identity import ProcessIdentity

LARGEST_LOG = 5_000_000
_TAIL = 4_000
# faulthandler's report: the error, and the innermost line of code
_FATAL = re.compile(r"^(Fatal Python error: [^\n]*).*?^  File ([^\n]*)", re.MULTILINE | re.DOTALL)


def folder(name: str) -> Path:
    path = Path(settings.PGQUEUE["VAR"]).absolute() / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def in_hand_file(identity: ProcessIdentity) -> Path:
    return folder("run") / f"{identity.pid}-{identity.start_ticks}.hand"


def log_file(label: str, ordinal: int) -> Path:
    return plain_log(f"{quote(label, safe='')}.{ordinal}")


def plain_log(name: str) -> Path:
    """Path of a log to append to; a large log is rotated first."""
    path = folder("log") / f"{name}.log"
    _put_aside(path)
    return path


def put_aside_large_logs() -> None:
    """Rotates logs of running processes, too: these append, so they go on in the emptied file.

    Output written between the last size check and the cut, some microseconds, is lost.
    """
    for path in folder("log").glob("*.log"):
        _put_aside(path)


def _put_aside(path: Path) -> None:
    """Keep the newest part in place of the previous rotation, if the disk allows."""
    with suppress(OSError):
        if path.stat().st_size <= LARGEST_LOG:
            return
        with path.open("rb+") as log:
            fcntl.flock(log, fcntl.LOCK_EX)  # another supervisor may use this folder
            if log.seek(0, os.SEEK_END) > LARGEST_LOG:
                log.seek(-LARGEST_LOG, os.SEEK_END)
                path.with_suffix(".log.1").write_bytes(log.read(2 * LARGEST_LOG))
                log.truncate(0)


def last_line(path: Path, since: int) -> str:
    """The last line of a process's log: for an uncaught exception, its own line below the traceback.

    After a fatal error caught by faulthandler (a segmentation fault): the error and its line of code.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            begun = since if since <= size else 0  # else the log was rotated since
            file.seek(max(begun, size - _TAIL))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    if fatal := _FATAL.search(text):
        return ", in ".join(part.strip() for part in fatal.groups())
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")

"""Where a process leaves files: its log in var/log, what it has in hand in var/run."""

import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from django.conf import settings

from pgqueue_admin.workers.identity import Identity

LARGEST_LOG = 5_000_000
_TAIL = 4_000
# as faulthandler writes: of what it died, and the innermost line of code
_FATAL = re.compile(r"^(Fatal Python error: [^\n]*).*?^  File ([^\n]*)", re.MULTILINE | re.DOTALL)


def folder(name: str) -> Path:
    path = Path(settings.PGQUEUE["VAR"]).absolute() / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def in_hand_file(identity: Identity) -> Path:
    return folder("run") / f"{identity.pid}-{identity.start_ticks}.hand"


def log_file(label: str, ordinal: int) -> Path:
    return plain_log(f"{quote(label, safe='')}.{ordinal}")


def plain_log(name: str) -> Path:
    """Ready to be appended to; a large one is put aside first, where the disk lets us."""
    path = folder("log") / f"{name}.log"
    with suppress(OSError):
        if path.exists() and path.stat().st_size > LARGEST_LOG:
            path.replace(path.with_suffix(".log.1"))
    return path


def last_line(path: Path, since: int) -> str:
    """What a process said last: for an uncaught exception, its own line below the traceback.

    Of one that the interpreter saw die (a segmentation fault): of what, and in which line of code.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(since, path.stat().st_size - _TAIL))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    if fatal := _FATAL.search(text):
        return ", in ".join(part.strip() for part in fatal.groups())
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")

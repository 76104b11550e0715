"""The log file of a process on this machine: its lines, and the level of each."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

from pgqueue_admin.console import permissions
from pgqueue_admin.models import Process
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.permissions import Refusal
from pgqueue_admin.workers.reporting import process_identity

TAIL = 65_536  # bytes read from its end
# key in the address → words on the page
LEVELS = {"": "Every line", "warning": "Warnings and errors", "error": "Errors"}
_TONES = {"WARNING": "w", "ERROR": "e", "CRITICAL": "e"}
_SHOWN = {"": ("", "w", "e"), "warning": ("w", "e"), "error": ("e",)}
_HEAD = 80  # characters of a line that may hold its level; a line that begins with a blank belongs to another
_LEVEL = re.compile(r"\b(DEBUG|INFO|WARNING|ERROR|CRITICAL)\b|^Fatal Python error")


class LogLine(NamedTuple):
    text: str
    tone: str  # "e" of an error, "w" of a warning, else empty; lines without a level continue the one before


def refusal_for(person: Any) -> Refusal | None:
    """None if ``person`` may read it: handlers may print message content."""
    return permissions.refusal_on_page(person, "log") or permissions.refusal_on_page(person, "read")


def last_lines(process: Process, most: int, access: ContentAccess) -> list[LogLine]:
    """The last ``most`` lines of the last TAIL bytes, masked for this person; empty if the log is not here."""
    path = path_of(process) if most else None
    if path is None:
        return []
    with path.open("rb") as file:
        start = max(0, path.stat().st_size - TAIL)
        file.seek(start)
        lines = file.read(TAIL).decode("utf-8", "backslashreplace").splitlines()
    if access.reads_texts:
        lines = [access.line(line) for line in lines[bool(start) :]]  # the first one may be cut
    return list(_toned(lines))[-most:]


def picked(lines: Iterable[LogLine], words: str, level: str) -> list[LogLine]:
    """Lines that contain ``words``, in any case, at ``level`` or worse: a key of LEVELS."""
    return [line for line in lines if words.lower() in line.text.lower() and line.tone in _SHOWN[level]]


def path_of(process: Process) -> Path | None:
    """None for a file outside the log folder, whatever the row says."""
    folder = (Path(settings.PGQUEUE["VAR"]) / "log").resolve()
    if not process.log or process.host != process_identity.host():
        return None
    path = Path(process.log).resolve()
    return path if path.is_relative_to(folder) and path.is_file() else None


def _toned(texts: Iterable[str]) -> Iterator[LogLine]:
    tone = ""
    for text in texts:
        if not text[:1].isspace() and (found := _LEVEL.search(text[:_HEAD])):
            tone = _TONES.get(found[1] or "CRITICAL", "")
        yield LogLine(text, tone)

"""Finds the messages behind a point of Trends in the files, in another process."""

import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, NamedTuple

from django.conf import settings

from pgqueue_admin.history.rollups import latency_bands
from pgqueue_admin.history.rollups.queries import NAMES, TrendQuery
from pgqueue_admin.history.runtime.installation import missing
from pgqueue_admin.history.storage.layout import folder
from pgqueue_admin.models import DataFile

MOST = 100
UNSUCCESSFUL = "unsuccessful"
DISCARDED = "discarded"  # by a person while it waited: in the files, but in no figure
WITHIN = 8.0  # seconds that a page may take; the number of unread files is reported
_START = 20.0  # further seconds until an unresponsive process is ended
_AT_ONCE = BoundedSemaphore(2)  # each scan uses a processor
_ROOT = Path(__file__).resolve().parents[3]
_HASH = 32  # bytes of a SHA-256; a truncated body keeps more
_INSTANTS = ("sent_at", "started_at", "ended_at")


class FilesUnreadable(Exception):
    """Why the files cannot be read now, as a sentence."""


@dataclass(frozen=True, slots=True)
class FinishedMessage:
    """One handling of a message. Durations in milliseconds; None if unknown."""

    source: str
    seq: int
    queue: str | None
    endpoint: str | None
    type: str | None
    result: str
    message_id: str | None
    sent_at: datetime | None
    started_at: datetime | None
    ended_at: datetime
    critical_ms: int | None
    processing_ms: int | None
    delivery_ms: int | None
    exception_type: str | None
    exception_message: str | None
    body_bytes: int | None
    conversation_id: str | None = None
    headers: str | None = None
    body: bytes | None = None

    @property
    def why_no_body(self) -> str:
        """Empty if the body is kept whole."""
        if self.body_bytes is None:
            return "It had none: NULL."
        if self.body is None:
            return "History keeps none of it (PGQUEUE_HISTORY_BODIES)."
        is_whole = len(self.body) == self.body_bytes
        if len(self.body) == _HASH and (not is_whole or settings.PGQUEUE["HISTORY_BODIES"] == "hash"):
            return "History keeps its SHA-256 only (PGQUEUE_HISTORY_BODIES)."
        if is_whole:
            return ""
        return f"History keeps its first {len(self.body):,} bytes (PGQUEUE_HISTORY_BODIES)."


class LookupResult(NamedTuple):
    """``matched``: in the ``files`` except the ``unread`` ones."""

    newest: list[FinishedMessage]
    matched: int
    files: int
    unread: int


class LookupTimings(NamedTuple):
    """A duration filter: one of MEASURES, and a band of latency_bands."""

    measure: str
    band: int


def newest(
    asked: TrendQuery, result: str = "", most: int = MOST, fingerprint: str = "", took: LookupTimings | None = None
) -> LookupResult:
    """Matches of ``asked``, last ended first. ``result``: one, or UNSUCCESSFUL: all but success. Raises
    FilesUnreadable.

    Only messages that figures count: unless asked for, none that were discarded while they waited.
    """
    equal = {name: getattr(asked, name) for name in NAMES if getattr(asked, name)}
    unequal = {} if result == DISCARDED else {"result": [DISCARDED]}
    if result == UNSUCCESSFUL:
        unequal["result"].append("success")
    elif result:
        equal["result"] = result
    if fingerprint:
        equal["fingerprint"] = fingerprint
    between = {f"{took.measure}_ms": latency_bands.whole(took.band)} if took else {}
    return _ask(asked.since, asked.until, equal, most, unequal=unequal, between=between)


def one(source: str, seq: int, at: datetime) -> FinishedMessage | None:
    """The message with this number in a table that ended at ``at``, with its body. Raises FilesUnreadable."""
    found = _ask(at, at + timedelta(microseconds=1), {"source": source, "seq": seq}, 1, part="whole")
    if not found.newest and found.unread:
        raise FilesUnreadable(f"Its day has so many files that they were not read within {WITHIN:.0f} s.")
    return found.newest[0] if found.newest else None


def in_conversation(conversation_id: str, since: datetime, until: datetime, most: int) -> LookupResult:
    """Messages of the conversation in this time, with headers and without bodies. Raises FilesUnreadable."""
    return _ask(since, until, {"conversation_id": conversation_id}, most, part="with headers")


def _ask(since: datetime, until: datetime, equal: dict[str, Any], most: int, **more: Any) -> LookupResult:
    """Safe against concurrent compaction: compacted files stay for an hour."""
    paths = list(_paths(since, until))
    if not paths:
        return LookupResult([], 0, 0, 0)
    asked = {
        "unequal": {},
        "between": {},
        "part": "listed",
        **more,
        "paths": paths,
        "equal": equal,
        "most": most,
        "within": WITHIN,
    }
    told = answered("messages", {**asked, "since": since.isoformat(), "until": until.isoformat()})
    rows = [FinishedMessage(**{name: _read(name, value) for name, value in row.items()}) for row in told["rows"]]
    return LookupResult(rows, told["matched"], len(paths), told["unread"])


def _paths(since: datetime, until: datetime) -> Iterable[str]:
    """Files of each day in the window, the newest first."""
    last = (until - timedelta(microseconds=1)).astimezone(UTC).date()
    days = {"day__gte": since.astimezone(UTC).date(), "day__lte": last}
    files = DataFile.objects.filter(dataset=DataFile.Dataset.HISTORY, **days).order_by("-day", "-pk")
    return (str(folder() / path) for path in files.values_list("path", flat=True))


def answered(about: str, question: dict[str, Any]) -> Any:
    """The answer of parquet_scan ``about`` messages or events. Raises FilesUnreadable."""
    if absent := missing():
        raise FilesUnreadable(absent)
    if not _AT_ONCE.acquire(timeout=WITHIN):
        raise FilesUnreadable("Others are looking into the files just now. Try again in some seconds.")
    try:
        command = [sys.executable, "-m", "pgqueue_admin.history.storage.parquet_scan", about]
        said = json.dumps(question)
        child = subprocess.run(command, input=said, capture_output=True, text=True, timeout=WITHIN + _START, cwd=_ROOT)
    except subprocess.TimeoutExpired:
        raise FilesUnreadable(f"The files in {folder()} were not read within {WITHIN + _START:.0f} s.") from None
    finally:
        _AT_ONCE.release()
    if child.returncode:
        why = child.stderr.strip().splitlines() or [f"it ended with {child.returncode}"]
        raise FilesUnreadable(f"The files in {folder()} cannot be read from here: {why[-1][:500]}")
    return json.loads(child.stdout)


def _read(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _INSTANTS:
        return datetime.fromisoformat(value)
    return b64decode(value) if name == "body" else value

"""Failures of a window by error, first own frame and normalized message: the twenty most frequent."""

import re
from datetime import datetime
from hashlib import sha256
from typing import Any

from pgqueue_admin.history.rollups import queries
from tests.history.independent_recount.windows import ALL, Subject, Window, halves

Key = tuple[Subject, Window]
_VARIES = {
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}": "<id>",
    r"'[^']*'|\"[^\"]*\"|“[^”]*”": "<text>",
    r"[0-9]+": "<n>",
}
_LOOKED_AT = 20_000  # characters of a trace, counted from after its message
_OWN = re.compile(
    r"^ +at (?!(?:NServiceBus|System|Microsoft|Npgsql|Newtonsoft)\.|lambda_method)([^(\n]*)", re.MULTILINE
)


def plain(database: Any, window: Window) -> dict[Key, Any]:
    first = database.value("select date_trunc('day', min(ended_at), 'UTC') from recounted")
    died = database.all("select * from recounted where not is_ok and exception is not null")
    subjects = {Subject(what, getattr(row, what)) for row in died for what in ("queue", "endpoint", "type")}
    return {
        (subject, part): _by_error(died, subject, part, first)
        for part in (window, *halves(window))
        for subject in (ALL, *subjects)
        if subject.name or not subject.what
    }


def told(window: Window, keys: list[Key]) -> dict[Key, Any]:
    return {(subject, part): queries.failures(subject.asked(part, "day")) for subject, part in keys}


def _by_error(died: list[Any], subject: Subject, window: Window, first: datetime) -> list[Any]:
    """Like trends.Failure. New means never seen before, if anything was."""
    since, until = window
    before, found = set[Any](), dict[Any, list[datetime]]()
    for row in died:
        if row.ended_at < since:
            before.add(_error(row))
        elif row.ended_at < until and (not subject.what or getattr(row, subject.what) == subject.name):
            found.setdefault(_error(row), []).append(row.ended_at)
    told = [
        (_fingerprint(*error), error[0], error[2], min(at), max(at), len(at), first < since and error not in before)
        for error, at in found.items()
    ]
    return sorted(told, key=lambda each: (-each[5], each[0]))[:20]


def _error(row: Any) -> tuple[str, str | None, str]:
    message = row.message
    said = len(message) if row.trace.startswith(f"{row.exception}: {message}") else 0
    frame = _OWN.search(row.trace[said : said + _LOOKED_AT])
    for pattern, stands_for in _VARIES.items():
        message = re.sub(pattern, stands_for, message)
    return row.exception, frame[1] if frame else None, message[:200]


def _fingerprint(*parts: str | None) -> str:
    return sha256("\n".join(part for part in parts if part is not None).encode()).hexdigest()[:16]

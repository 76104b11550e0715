"""Exports the audit's entries that a filter finds, as CSV or JSON lines."""

import csv
import json
from collections.abc import Iterable
from typing import IO, Any

from pgqueue_admin.formatting import spreadsheets
from pgqueue_admin.models import AuditEntry

MOST = 100_000  # entries in one file
COLUMNS = (
    "at",
    "who",
    "verb",
    "noun",
    "subject",
    "count",
    "before",
    "after",
    "bodies",
    "reason",
    "origin",
    "operation_id",
)


def as_csv(entries: Iterable[AuditEntry], file: IO[str]) -> int:
    """Return the number of entries written."""
    lines, count = csv.writer(file), 0
    lines.writerow(COLUMNS)
    for count, entry in enumerate(entries, 1):  # noqa: B007 the last one is returned
        lines.writerow([_cell(each) for each in _values(entry).values()])
    return count


def as_json_lines(entries: Iterable[AuditEntry], file: IO[str]) -> int:
    """Return the number of entries written."""
    count = 0
    for count, entry in enumerate(entries, 1):  # noqa: B007 likewise
        file.write(json.dumps(_values(entry), ensure_ascii=False) + "\n")
    return count


def _values(entry: AuditEntry) -> dict[str, Any]:
    """Times are in UTC."""
    found = {name: getattr(entry, name) for name in COLUMNS}
    return {**found, "at": entry.at.isoformat()}


def _cell(value: Any) -> Any:
    return spreadsheets.cell(json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value)

"""Archived messages as a file, CSV or JSON lines: its columns, its lines, and its last line."""

import csv
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from io import StringIO
from typing import Any, NamedTuple

from pgqueue_admin.archive.messages import ArchivedMessage
from pgqueue_admin.formatting import spreadsheets
from pgqueue_admin.services.content_access import ContentAccess, Payload

COLUMNS = {  # the file's columns, with the message's attributes
    "archive_id": "id",
    "died_at": "died_at",
    "state": "state",
    "result": "result",
    "kind": "kind",
    "queue": "queue",
    "endpoint": "endpoint",
    "host": "machine",
    "type": "message_type",
    "message_id": "message_id",
    "row_id": "row_id",
    "sent_at": "sent_at",
    "attempts": "attempts",
    "body_bytes": "body_bytes",
    "error": "exception_type",
    "error_message": "exception_message",
    "error_message_length": "exception_message_length",
    "cannot_be_retried": "retry_blocked_reason",
    "resolved_by": "resolved_by",
    "resolved_at": "resolved_at",
    "ended_at": "ended_at",
    "operation": "operation",
    "headers": "headers",
    "headers_length": "headers_length",
}
_CONTENT = {  # columns withheld from persons who may not read contents, with what replaces them
    "error_message": "left out",
    "error_message_length": "left out",
    "headers": "names only",
    "headers_length": "left out",
}


MASKED = "Masking rules are in force: a bar with the rule's name stands for what they hide."


class Exported(NamedTuple):
    """``payload``: None if no body fields were requested."""

    message: ArchivedMessage
    payload: Payload | None = None


class Began(NamedTuple):
    """What the file says before the first message."""

    who: str
    at: datetime
    searched: str


class Ended(NamedTuple):
    """What the file says after the last message. ``why``: what ended it early; then there may be more messages."""

    messages: int
    why: str = ""

    @property
    def is_whole(self) -> bool:
        return not self.why

    @property
    def said(self) -> str:
        number = f"{self.messages} message{'' if self.messages == 1 else 's'}"  # no comma, which CSV would quote
        return f"whole: {number}" if self.is_whole else f"NOT WHOLE: {number}, and perhaps more. {self.why}"


class CsvFile:
    """The first row names the columns and what is left out of them. The last row is ``# whole: 38 messages``.

    While a search finds nothing, empty lines keep the connection alive: CSV readers skip them.
    """

    name, content_type = "csv", "text/csv; charset=utf-8"

    def __init__(self, access: ContentAccess, fields: Sequence[str] = ()):
        self._access, self.fields = access, fields

    def head(self, began: Began) -> str:
        left_out = _CONTENT if self._access.refusal else {}
        names = (*COLUMNS, *of_fields(self.fields))
        return _rows(
            [[spreadsheets.cell(f"{name} ({left_out[name]})" if name in left_out else name) for name in names]]
        )

    def lines(self, messages: Iterable[Exported]) -> str:
        found = (_values(each, self._access, self.fields) for each in messages)
        return _rows([spreadsheets.cell(value) for value in values.values()] for values in found)

    def reading(self, messages: int) -> str:
        return "\r\n"

    def end(self, ended: Ended) -> str:
        return _rows([[f"# {ended.said}"]])


class JsonLines:
    """The first and last records have the key ``export``, which no message has: the search, and whether it is whole.

    While a search finds nothing, records with this key keep the connection alive.
    """

    name, content_type = "jsonl", "application/jsonl"

    def __init__(self, access: ContentAccess, fields: Sequence[str] = ()):
        self._access, self.fields = access, fields

    def head(self, began: Began) -> str:
        refusal, rules = self._access.refusal, self._access.rules
        why = refusal or (MASKED if rules else "")
        columns = [*COLUMNS, *of_fields(self.fields)]
        about = {"who": began.who, "at": began.at.isoformat(), "q": began.searched, "columns": columns}
        return _record({"export": "begun", **about, "left_out": _CONTENT if refusal else {}, "why": why})

    def lines(self, messages: Iterable[Exported]) -> str:
        return "".join(_record(_values(each, self._access, self.fields)) for each in messages)

    def reading(self, messages: int) -> str:
        return _record({"export": "reading", "messages": messages})

    def end(self, ended: Ended) -> str:
        return _record({"export": "ended", "whole": ended.is_whole, "messages": ended.messages, "why": ended.why})


Format = CsvFile | JsonLines
FORMATS: dict[str, type[Format]] = {each.name: each for each in (CsvFile, JsonLines)}


def of_fields(fields: Sequence[str]) -> list[str]:
    """Columns of body fields. The first says whether the whole body was read, or why not."""
    return ["body_fields", *(f"body.{name}" for name in fields)] if fields else []


def _values(exported: Exported, access: ContentAccess, fields: Sequence[str]) -> dict[str, Any]:
    """Times are in UTC, including those beyond the calendar."""
    message = access.archived(exported.message)
    values = {name: _plain(getattr(message, of)) for name, of in COLUMNS.items()}
    if not fields:
        return values
    payload = exported.payload or Payload({}, "not read")
    told = {f"body.{name}": payload.fields.get(name) for name in fields}
    return {**values, "body_fields": payload.missing or "whole", **told}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value if value is None or isinstance(value, int) else str(value)


def _rows(rows: Iterable[list[Any]]) -> str:
    file = StringIO()
    csv.writer(file).writerows(rows)
    return file.getvalue()


def _record(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False) + "\n"

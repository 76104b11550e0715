"""Monitoring statements, with the parameters and results of PostgreSQL's of the same name."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Params, Row
from pgqueue_admin.dialects.implicit_session import row_type
from pgqueue_admin.dialects.sqlserver import addressing
from pgqueue_admin.dialects.sqlserver.query import Query, compose
from pgqueue_admin.dialects.statements import Statement

_NUMBERS = 2**64
_DUE = {"-infinity": datetime(1753, 1, 1, tzinfo=UTC), "infinity": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)}
# The transport's columns and types in PostgreSQL's terms, by which table checks decide.
_NAMES = {"rowversion": "seq"}
_TYPES = {
    "uniqueidentifier": "uuid",
    "datetime": "timestamp without time zone",
    "datetime2": "timestamp without time zone",
    "nvarchar": "text",
    "varchar": "text",
    "varbinary": "bytea",
    "int": "integer",
}
_SHOWS_BODY = "bodystring"  # computed by the table owner's definition: never read


class LookingQuery(Query):
    """``named``: table names by parameter, for functions that take a name as text."""

    named: Mapping[str, str]

    @classmethod
    def of(cls, query: Query, named: Mapping[str, str]) -> Self:
        made = cls(query)
        made.named = named
        return made

    def given(self, params: Params) -> dict[str, Any]:
        """Its values in the server's form: lists as JSON, times as naive UTC.

        A delayed message has no id: its seq stands for one.
        """
        said: dict[str, Any] = dict(params) if isinstance(params, Mapping) else {}
        if "%(number)s" in self:
            said["number"] = number_of(UUID(str(said["id"])))
        if "%(row_numbers)s" in self:
            said["row_numbers"] = [number_of(UUID(str(each))) for each in said["ids"]]
        if "due" in said:
            said["due"] = _due(said["due"])
        return {name: _value(value) for name, value in {**said, **self.named}.items() if f"%({name})s" in self}

    def read(self, row: Any) -> Row:
        said = _as_said(row._asdict())
        return row_type(tuple(said))(*said.values())


def compose_looking(text: str, identifiers: Mapping[str, Any]) -> LookingQuery:
    """As ``query.compose``; a Statement among the identifiers is a part, which may contain others."""
    parts = {name: value.text for name, value in identifiers.items() if isinstance(value, Statement)}
    for _ in parts:
        for name, part in parts.items():
            text = text.replace(f"{{{name}}}", part)
    tables = {name: value for name, value in identifiers.items() if isinstance(value, Address)}
    named = {f"{name}_name": addressing.qualified(table) for name, table in tables.items()}
    return LookingQuery.of(compose(text, dict(identifiers)), {key: name for key, name in named.items() if key in text})


# --- parameters


def _value(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return json.dumps(list(value))
    return value


def _due(said: str) -> datetime | str:
    """A due time as a page key; the server refuses an invalid one."""
    if said in _DUE:
        return _DUE[said]
    try:
        return datetime.fromisoformat(said.removesuffix("+00"))
    except ValueError:
        return said


def number_of(row_id: UUID) -> int:
    """The seq of a delayed message, from the id that stands for it; an id without seq gives one that never occurs."""
    number = row_id.int
    return number if number < _NUMBERS // 2 else number - _NUMBERS if number < _NUMBERS else -(2**63)


# --- results


def _as_said(row: dict[str, Any]) -> dict[str, Any]:
    """Convert columns: the suffix of a column's name selects the conversion; the rest is its name."""
    said: dict[str, Any] = {}
    for column, value in row.items():
        name, _, form = column.rpartition("_")
        read = FORMS.get(form)
        said[name if read else column] = read(value) if read else value
    if "headers_beyond" in said:
        said["headers_size"] = _size(said["headers_text"], said.pop("headers_beyond"))
    return said


def _text(data: bytes | None) -> str | None:
    """Decode UTF-16; a lone surrogate, which a column can contain, becomes the replacement character."""
    return None if data is None else bytes(data).decode("utf-16-le", "replace")


def _list(text: str | None) -> Any:
    """Parse an aggregate: a list of values, or the types of a table's columns by name."""
    found = json.loads(text) if text else None
    if not found:
        return found
    return [each["value"] for each in found] if "value" in found[0] else _columns(found)


def _columns(found: list[dict[str, Any]]) -> dict[str, str]:
    """Column types for table checks. RowVersion is present as seq and by its own name, which marks the transport."""
    said = {each["name"].lower(): _type(each) for each in found}
    said.pop(_SHOWS_BODY, None)
    return {**said, **{name: said[theirs] for theirs, name in _NAMES.items() if theirs in said}}


def _type(column: dict[str, Any]) -> str:
    known: str = column["type"]
    return f"{known} (user-defined)" if column["is_user_defined"] else _TYPES.get(known, known)


def _size(text: str | None, beyond: int | None) -> int | None:
    """Size of headers in UTF-8; if truncated, an estimate that exceeds the part read."""
    if text is None:
        return None
    here = len(text.encode(errors="replace"))
    return here if beyond is None else max(here + 1, beyond)


# By the suffix of a column's name.
FORMS: dict[str, Callable[[Any], Any]] = {
    "json": _list,
    "utf16": _text,
    "number": lambda number: UUID(int=number % _NUMBERS),
}

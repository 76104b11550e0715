"""Types of a message for matching with rules: full names and their last parts."""

from collections.abc import Mapping
from typing import Any

from pgqueue_admin.archive import long_headers
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.type_names import short_type


def types_of(*said: str | None) -> tuple[str, ...]:
    """Return full names and their last parts of the types in headers or columns, which may list several."""
    full = [name for each in said for part in (each or "").split(";") if (name := part.split(",")[0].strip())]
    return tuple(dict.fromkeys([*full, *map(short_type, full)]))


def types_told(column: str | None, headers: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return all types of a message whose column names only the first. None if its headers do not list them."""
    said = headers.get(h.ENCLOSED_MESSAGE_TYPES)
    return types_of(column, said) if said else ()


def types_of_row(row: Any) -> tuple[str, ...]:
    """Return the types of an archived row; rows of lists have no headers. A lease message's kind is its only type."""
    if getattr(row, "kind", "") == "lease":
        return types_of(row.message_type)
    headers, _ = long_headers.read(getattr(row, "headers", None), getattr(row, "headers_length", None))
    return types_told(row.message_type, headers)

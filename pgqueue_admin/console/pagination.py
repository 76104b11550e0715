"""Opaque cursors: the key where a page of rows ends. Paging is by key, never by offset (DESIGN decision 7)."""

import base64
import binascii
import json
from typing import Any

LARGEST = 2**63 - 1  # the largest bigint


def pack(*key: Any) -> str:
    """A cursor for ``?after=`` or ``?before=``."""
    text = json.dumps(key, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def unpack(cursor: str | None) -> list[Any] | None:
    """The key, or None for an invalid cursor: a bad value falls back to the first page."""
    if not cursor:
        return None
    try:
        key = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    return key if isinstance(key, list) else None


def integer(cursor: str | None) -> int | None:
    """The key of a cursor that consists of one integer."""
    key = unpack(cursor)
    number = key[0] if key else None
    return number if isinstance(number, int) and not isinstance(number, bool) and abs(number) <= LARGEST else None

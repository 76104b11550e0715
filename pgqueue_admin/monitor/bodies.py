"""Bodies of waiting messages, a part at a time, and their readable text (C3, T6)."""

import re
from dataclasses import dataclass
from uuid import UUID

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor.tables import QueueTable

PART = 65_536

_ESCAPED = re.compile(rb"\\(\\|[0-3][0-7]{2})")
_CUT_ESCAPE = re.compile(r"\\[0-7]{0,2}\Z")


@dataclass(frozen=True, slots=True)
class Body:
    """A part of a body. ``part`` is None where the body is NULL."""

    part: bytes | None
    offset: int
    size: int | None


@dataclass(frozen=True, slots=True)
class BodyString:
    """Readable text, and where it comes from: the table's column, or the body decoded by us (T6)."""

    text: str
    from_column: bool
    stored: str | None = None  # the column as it stands there: octal-escaped bytes, not UTF-8


def body(
    connection: Connection, table: QueueTable, row_id: UUID | str, offset: int = 0, length: int = PART
) -> Body | None:
    """Bytes from ``offset``, cut in the database; None where the message is not there any more."""
    values = {"id": row_id, "offset": offset, "length": length}
    found = connection.one(postgresql().browse.body(table=table.address), values)
    return Body(None if found.part is None else bytes(found.part), offset, found.size) if found else None


def bodystring(connection: Connection, table: QueueTable, row_id: UUID | str, length: int = PART) -> BodyString | None:
    """The first ``length`` characters of text; None where there is no such message, or its body is NULL."""
    if not table.has_bodystring:
        return _decoded(body(connection, table, row_id, 0, length))
    found = connection.one(postgresql().browse.bodystring(table=table.address), {"id": row_id, "length": length})
    if found is None or found.part is None:
        return None
    return BodyString(readable(unescaped(found.part)), True, found.part)


def unescaped(text: str) -> bytes:
    r"""The bytes that PostgreSQL wrote as ``\303\251``; an escape that was cut off at the end goes."""
    whole = _CUT_ESCAPE.sub("", text) if _ends_in_cut_escape(text) else text
    return _ESCAPED.sub(lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 8)]), whole.encode("latin-1", "replace"))


def readable(data: bytes) -> str:
    """UTF-8 where it is that, and every other byte as ``\\xNN``: nothing is lost or invented."""
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "backslashreplace")


def _decoded(found: Body | None) -> BodyString | None:
    return BodyString(readable(found.part), False) if found and found.part is not None else None


def _ends_in_cut_escape(text: str) -> bool:
    return bool(re.search(r"(?<!\\)(\\\\)*\\[0-7]{0,2}\Z", text))

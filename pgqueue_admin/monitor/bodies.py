"""Bodies of waiting messages, in parts, and their readable text (C3, T6)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting import escape_invisible
from pgqueue_admin.formatting.payload_fields import BodyStart
from pgqueue_admin.monitor.queue_table import QueueTable

PART = 65_536
START = 16_384  # bytes of a body that a list reads for its columns

_ESCAPED = re.compile(rb"\\(\\|[0-3][0-7]{2})")
_CUT_ESCAPE = re.compile(r"\\[0-7]{0,2}\Z")


@dataclass(frozen=True, slots=True)
class MessageBody:
    """A part of a body. ``part`` is None if the body is NULL."""

    part: bytes | None
    offset: int
    size: int | None


@dataclass(frozen=True, slots=True)
class BodyString:
    """Readable text and its source: the table's column, or the body decoded by us (T6)."""

    text: str
    from_column: bool
    stored: str | None = None  # the column as stored: octal-escaped bytes, not UTF-8
    used: int = 0  # bytes of the body that it covers


def body(
    connection: Connection,
    table: QueueTable,
    row_id: UUID | str,
    offset: int = 0,
    length: int = PART,
    seq: int | None = None,
) -> MessageBody | None:
    """Bytes from ``offset``, cut in the database; None if the message is gone.

    ``seq``: if known, used by databases without an index on ids.
    """
    values: dict[str, Any] = {"id": row_id, "offset": offset, "length": length}
    by_seq = seq is not None and not connection.dialect.indexes_ids
    browse = connection.dialect.browse
    statement = browse.numbered_body if not table.has_ids else browse.body_at if by_seq else browse.body
    found = connection.one(statement(table=table.address), {**values, "seq": seq} if by_seq else values)
    return MessageBody(None if found.part is None else bytes(found.part), offset, found.size) if found else None


def starts(connection: Connection, table: QueueTable, seqs: Sequence[int]) -> dict[UUID, BodyStart]:
    """Starts of the bodies of the messages with these seqs, by row id. For a few messages with unique seqs."""
    query = connection.dialect.browse.body_starts(table=table.address)
    return _starts(connection.all(query, {"seqs": seqs, "most": START}))


def delayed_starts(connection: Connection, table: QueueTable, ids: Sequence[UUID]) -> dict[UUID, BodyStart]:
    """As ``starts``, for messages of a delayed table."""
    query = connection.dialect.browse.delayed_body_starts(table=table.address)
    return _starts(connection.all(query, {"ids": list(ids), "most": START}))


def _starts(rows: Iterable[Any]) -> dict[UUID, BodyStart]:
    return {row.id: BodyStart(None if row.part is None else bytes(row.part), bool(row.is_cut)) for row in rows}


def bodystring(
    connection: Connection,
    table: QueueTable,
    row_id: UUID | str,
    length: int = PART,
    offset: int = 0,
    seq: int | None = None,
) -> BodyString | None:
    """The first ``length`` characters of the column; None if there is no such message, or its body is NULL.

    Without the column, or from a later ``offset``, the body is decoded: byte offsets do not locate characters of the
    column.
    """
    if offset or not table.has_bodystring:
        part = body(connection, table, row_id, offset, length, seq)
        return decoded(part.part, part.size or 0, offset) if part and part.part is not None else None
    found = connection.one(connection.dialect.browse.bodystring(table=table.address), {"id": row_id, "length": length})
    if found is None or found.part is None:
        return None
    begin = decoded(unescaped(found.part), found.size or 0)
    return replace(begin, from_column=True, stored=found.part)


def decoded(part: bytes, size: int, offset: int = 0) -> BodyString:
    """A part of ``size`` bytes as text. A character cut at the end is left to the next part."""
    used = len(part) if offset + len(part) >= size else escape_invisible.decode_part(part)[1]
    return BodyString(readable(part[:used]), False, used=used)


def unescaped(text: str) -> bytes:
    r"""The bytes that PostgreSQL wrote as ``\303\251``; an escape that was cut off at the end goes."""
    whole = _CUT_ESCAPE.sub("", text) if _ends_in_cut_escape(text) else text
    return _ESCAPED.sub(lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 8)]), whole.encode("latin-1", "replace"))


def readable(data: bytes) -> str:
    """UTF-8 where it is that, and every other byte as ``\\xNN``: nothing is lost or invented."""
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "backslashreplace")


def _ends_in_cut_escape(text: str) -> bool:
    return bool(re.search(r"(?<!\\)(\\\\)*\\[0-7]{0,2}\Z", text))

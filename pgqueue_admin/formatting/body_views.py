"""A message body for reading: its kind, and its views pretty, raw, hex and bodystring."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pgqueue_admin.formatting import escape_invisible, pretty_print
from pgqueue_admin.formatting.escape_invisible import TextSpan, merged

# Bytes as hex and ASCII, sixteen per row.
_ROW = 16


def hex_rows(raw: bytes, offset: int = 0) -> Iterator[str]:
    """Lines like ``00000010  7b 22 4f 72 64 65 72 49  64 22 3a 22 32 30 32 36  |{"OrderId":"2026|``."""
    for start in range(0, len(raw), _ROW):
        row = raw[start : start + _ROW]
        yield f"{offset + start:08x}  {_hex(row[:8]):<23}  {_hex(row[8:]):<23}  |{_ascii(row)}|"


def _hex(row: bytes) -> str:
    return row.hex(" ")


def _ascii(row: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)


CHUNK = 65_536  # bytes that one page renders
LARGE = 1_000_000  # bytes; larger bodies are re-indented only on request
VIEWS = ("pretty", "raw", "hex", "bodystring")
_MAX_PIECES = 1_500  # more spans would make a page heavy: drop the colours

_ODD = re.compile("[\x00-\x08\x0b\x0e-\x1f\udc80-\udcff]")
_INDENTED = {"JSON": pretty_print.indented_json, "XML": pretty_print.indented_xml}


@dataclass(frozen=True, slots=True)
class BodyPart:
    """Bytes ``start`` to ``end`` of a body of ``total``, rendered as ``pieces`` in ``view``."""

    kind: str
    view: str
    pieces: list[TextSpan]
    start: int
    end: int
    total: int
    note: str = ""

    @property
    def whole(self) -> bool:
        return self.start == 0 and self.end >= self.total

    @property
    def next_start(self) -> int | None:
        return self.end if 0 < self.end < self.total else None


def kind_of(head: bytes, content_type: str | None = None) -> str:
    """JSON, XML, text or binary: as declared if the bytes allow, otherwise by their look."""
    if _looks_binary(head):
        return "binary"
    declared = (content_type or "").split(";")[0].strip().lower()
    for kind in ("json", "xml"):
        if declared.endswith((f"/{kind}", f"+{kind}")):
            return kind.upper()
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return {b"{": "JSON", b"[": "JSON", b"<": "XML"}.get(first, "text")


def default_view(kind: str, total: int) -> str:
    if kind == "binary":
        return "hex"
    return "pretty" if kind in _INDENTED and total <= LARGE else "raw"


def part(
    raw: bytes,
    *,
    start: int = 0,
    total: int | None = None,
    content_type: str | None = None,
    view: str = "",
) -> BodyPart:
    """The bytes from ``start`` on, at most CHUNK, rendered in ``view`` (empty: the kind's default)."""
    total = start + len(raw) if total is None else total
    kind = kind_of(raw, content_type)
    view = view if view in VIEWS else default_view(kind, total)
    chunk = raw[:CHUNK]
    if view == "hex":
        lines = "\n".join(hex_rows(chunk, start))
        return BodyPart(
            kind,
            view,
            [TextSpan(lines)] if lines else [],
            start,
            start + len(chunk),
            total,
        )
    return _text_part(chunk, kind, view, start, total)


def readable(text: str, start: int, end: int, total: int) -> BodyPart:
    """The decoded text of a BodyString panel (T6), for these bytes."""
    return BodyPart("text", "bodystring", _light(escape_invisible.marked(text)), start, end, total)


def _text_part(chunk: bytes, kind: str, view: str, start: int, total: int) -> BodyPart:
    text, used = (
        escape_invisible.decode_part(chunk)
        if start + len(chunk) < total
        else (escape_invisible.decode(chunk), len(chunk))
    )
    pieces, note = [TextSpan(text)], ""
    if view == "pretty" and kind in _INDENTED and start == 0:
        pieces, note = _pretty(text, kind)
    marked = (mark for piece in pieces for mark in escape_invisible.marked(piece.text, piece.kind))
    return BodyPart(kind, view, _light(marked), start, start + used, total, note or _broken(text))


def _pretty(text: str, kind: str) -> tuple[list[TextSpan], str]:
    pieces = _INDENTED[kind](text)
    if pieces is None:
        return [TextSpan(text)], "Nested too deeply to indent: shown as it is."
    return pieces, ""


def _broken(text: str) -> str:
    count = escape_invisible.broken_bytes(text)
    return f"{count:,} {'byte is' if count == 1 else 'bytes are'} not UTF-8, shown as \\xNN." if count else ""


def _light(pieces: Iterable[TextSpan]) -> list[TextSpan]:
    """Few enough spans for a page: drop colours first, marks only if necessary."""
    kept = list(merged(pieces))
    if len(kept) <= _MAX_PIECES:
        return kept
    kept = list(merged(TextSpan(text, kind if kind == "mark" else "") for text, kind in kept))
    return kept if len(kept) <= _MAX_PIECES else [TextSpan("".join(piece.text for piece in kept))]


def _looks_binary(head: bytes) -> bool:
    """More than one byte in ten is no text, or it starts with a mark of UTF-16 or gzip."""
    sample = head[:4096]
    odd = len(_ODD.findall(escape_invisible.decode_part(sample)[0]))
    return odd * 10 > len(sample) or sample.startswith((b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b"))

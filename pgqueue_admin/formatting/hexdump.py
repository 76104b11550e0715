"""Bytes as hex and ASCII, sixteen a row."""

from collections.abc import Iterator

_ROW = 16


def rows(raw: bytes, offset: int = 0) -> Iterator[str]:
    """Lines like ``00000010  7b 22 4f 72 64 65 72 49  64 22 3a 22 32 30 32 36  |{"OrderId":"2026|``."""
    for start in range(0, len(raw), _ROW):
        row = raw[start : start + _ROW]
        yield f"{offset + start:08x}  {_hex(row[:8]):<23}  {_hex(row[8:]):<23}  |{_ascii(row)}|"


def _hex(row: bytes) -> str:
    return row.hex(" ")


def _ascii(row: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)

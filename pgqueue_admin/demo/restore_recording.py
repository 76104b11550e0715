"""Restores the recorded NServiceBus shop into an empty database, with its times as they were or shifted to now."""

import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from pgqueue_admin.dialects import Connection, dialect_for
from pgqueue_admin.transport.wire.wire_times import parse_time, wire_time

DUMP = Path(__file__).parent / "data" / "shop.sql.xz"
RECORDED_AT = datetime(2026, 11, 20, 17, 35, tzinfo=UTC)  # "now" for everything expired or due in it

_COPY = re.compile(rb"COPY .+ \((?P<columns>.+)\) FROM stdin;\n")
_END_OF_DATA = b"\\.\n"
_SESSION = (b"SET ", b"SELECT pg_catalog.set_config(")  # pg_dump's preamble: its caller configures the session
_WIRE_TIME = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{6} Z")  # wire sheet 7.1
_YEARS = range(1971, 2500)  # years such as 1 and 9999 mean "never" or are deliberate oddities: not shifted
_CHUNK = 500  # rows a network write

Shift = Callable[[bytes], bytes]


def restore(target: Connection | str, shift_to: datetime | None = None) -> None:
    """Fill the empty database ``target`` in one transaction. ``shift_to`` takes the place of RECORDED_AT.

    Raises AlreadyExists if the shop is already there.
    """
    if isinstance(target, str):
        with dialect_for(target).connect(target, application_name="pgqueue-admin restore") as connection:
            return restore(connection, shift_to)
    by = shift_to - RECORDED_AT if shift_to else None
    with lzma.open(DUMP) as lines, target.transaction():
        for statement in statements(lines):
            if copy := _COPY.fullmatch(statement):
                target.copy_in(statement, rows(lines, copy["columns"], by))
            elif not statement.startswith(_SESSION):
                target.run(statement)
        target.run(b"analyze")


def statements(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each statement of a plain dump. The caller consumes a COPY's data lines before the next statement."""
    statement = b""
    for line in lines:
        if statement or not line.startswith((b"--", b"\n")):
            statement += line
        if statement.endswith(b";\n"):
            yield statement
            statement = b""


def rows(lines: Iterable[bytes], columns: bytes, by: timedelta | None) -> Iterator[bytes]:
    """Yield the data of one COPY in chunks, its times shifted."""
    shifts = [(i, _SHIFTS[name](by)) for i, name in enumerate(columns.split(b", ")) if name in _SHIFTS] if by else []
    data = takewhile(lambda line: line != _END_OF_DATA, lines)
    while chunk := [_shifted(line, shifts) for line in islice(data, _CHUNK)]:
        yield b"".join(chunk)


def _shifted(line: bytes, shifts: list[tuple[int, Shift]]) -> bytes:
    if not shifts:
        return line
    fields = line[:-1].split(b"\t")
    for i, shift in shifts:
        fields[i] = shift(fields[i])
    return b"\t".join(fields) + b"\n"


def _column(by: timedelta) -> Shift:
    def shift(field: bytes) -> bytes:
        try:
            moved = _moved(datetime.fromisoformat(field.decode()), by)
        except ValueError:  # \N, infinity, BC, the year 20000
            return field
        return moved.isoformat(" ", "microseconds").encode()

    return shift


def _headers(by: timedelta) -> Shift:
    def each(match: re.Match[bytes]) -> bytes:
        at = parse_time(match[0].decode())
        return wire_time(_moved(at, by)).encode() if at and at.year in _YEARS else match[0]

    return lambda field: _WIRE_TIME.sub(each, field)


def _moved(at: datetime, by: timedelta) -> datetime:
    return at + by if at.year in _YEARS else at


_SHIFTS: dict[bytes, Callable[[Any], Shift]] = {b"expires": _column, b"due": _column, b"headers": _headers}

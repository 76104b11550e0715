"""Bulk insert into a queue by binary COPY: the cheapest way for many messages, for client and server."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from struct import Struct
from typing import Any

import psycopg
from psycopg.errors import error_from_result
from psycopg.generators import copy_end, fetch_many, send
from psycopg.pq import ExecStatus, TransactionStatus

CHUNK = 32 * 1024  # bytes that the server loads while the next are made
PIECE = 1024 * 1024  # bytes passed to libpq at once: one row can make a chunk of any size
_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_ROW = b"\0\4\0\0\0\x10"  # four columns, each preceded by its length; the id's is constant
_END = b"\xff\xff"
_instant = Struct("!iqi").pack
_never = Struct("!ii").pack
_length = Struct("!i").pack

Row = tuple[bytes, int | None, str, bytes]


def encoded(rows: Iterable[Row], encoding: str) -> Iterator[bytes]:
    """Encode rows of id, expires (microseconds since 2000), headers and body. ``encoding``: of the session."""
    parts, size = [_HEAD], 0
    for row_id, expires, headers, body in rows:
        text = headers.encode(encoding)
        until = _never(-1, len(text)) if expires is None else _instant(8, expires, len(text))
        parts += _ROW, row_id, until, text, _length(len(body)), body
        size += len(text) + len(body)
        if size >= CHUNK:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join([*parts, _END])


class CopyIn:
    """One COPY into the server. It is sent at once; its answer is read before the first data is sent."""

    def __init__(self, raw: psycopg.Connection[Any], statement: bytes):
        self._raw = raw
        self._pg = raw.pgconn
        self._has_begun = False
        self._pg.send_query(statement)
        self._flush()

    def put(self, chunk: bytes) -> None:
        """Send a chunk. Raises psycopg.Error."""
        self._begin()
        for start in range(0, len(chunk), PIECE):
            piece = chunk if len(chunk) <= PIECE else chunk[start : start + PIECE]
            if not self._pg.put_copy_data(piece):  # else rows would be lost silently
                raise psycopg.OperationalError("there is no memory left for what is to be loaded")
            self._flush()

    def end(self) -> None:
        """Finish the load. Raises psycopg.Error: nothing was loaded."""
        self._begin()
        self._raw.wait(copy_end(self._pg, None))

    def give_up(self) -> None:
        """Abort: nothing is loaded; the session is as after any failed statement."""
        try:
            with suppress(psycopg.Error):  # the abort itself raises
                self._begin()
                self._raw.wait(copy_end(self._pg, b"what was to be loaded could not be made"))
        finally:
            if self._pg.transaction_status == TransactionStatus.ACTIVE:  # the next result could be another statement's
                self._pg.finish()

    def _flush(self) -> None:
        if self._pg.flush():  # wait for a busy server: else the send buffer would grow without limit
            self._raw.wait(send(self._pg))

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._pg.consume_input()  # usually the answer has arrived by now
            result = self._raw.wait(fetch_many(self._pg))[0]
            if result.status != ExecStatus.COPY_IN:
                raise error_from_result(result, encoding="utf-8")

"""Bulk insert into a queue by binary COPY: the cheapest way for many messages, here and on the server."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from struct import Struct
from typing import Any

import psycopg
from psycopg.errors import error_from_result
from psycopg.generators import copy_end, fetch_many, send
from psycopg.pq import ExecStatus, TransactionStatus

CHUNK = 32 * 1024  # bytes that the server works on while the next are made
PIECE = 1024 * 1024  # of a chunk: what one row may make as large as it likes
_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_ROW = b"\0\4\0\0\0\x10"  # four columns; each after its length, and the id's is known
_END = b"\xff\xff"
_instant = Struct("!iqi").pack
_never = Struct("!ii").pack
_length = Struct("!i").pack

Row = tuple[bytes, int | None, str, bytes]


def encoded(rows: Iterable[Row], encoding: str) -> Iterator[bytes]:
    """Of id, expires (microseconds since 2000), headers and body. ``encoding``: of the session."""
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
    """One COPY into the server. It is asked for at once, and the answer is heard when there is something to send."""

    def __init__(self, raw: psycopg.Connection[Any], statement: bytes):
        self._raw = raw
        self._pg = raw.pgconn
        self._has_begun = False
        self._pg.send_query(statement)
        self._flush()

    def put(self, chunk: bytes) -> None:
        """Raises psycopg.Error."""
        self._begin()
        for start in range(0, len(chunk), PIECE):
            piece = chunk if len(chunk) <= PIECE else chunk[start : start + PIECE]
            if not self._pg.put_copy_data(piece):  # rows left out here nobody would miss
                raise psycopg.OperationalError("there is no memory left for what is to be loaded")
            self._flush()

    def end(self) -> None:
        """Raises psycopg.Error: nothing was loaded."""
        self._begin()
        self._raw.wait(copy_end(self._pg, None))

    def give_up(self) -> None:
        """Nothing is loaded; the session is as after any statement that failed."""
        try:
            with suppress(psycopg.Error):  # says just that
                self._begin()
                self._raw.wait(copy_end(self._pg, b"what was to be loaded could not be made"))
        finally:
            if self._pg.transaction_status == TransactionStatus.ACTIVE:  # the next answer could be anybody's
                self._pg.finish()

    def _flush(self) -> None:
        if self._pg.flush():  # the server is busy: what is made meanwhile would fill the memory
            self._raw.wait(send(self._pg))

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._pg.consume_input()  # by now the answer is mostly there
            result = self._raw.wait(fetch_many(self._pg))[0]
            if result.status != ExecStatus.COPY_IN:
                raise error_from_result(result, encoding="utf-8")

"""Sessions kept open between uses. Whoever borrows one connects it, so that a refusal is told at once."""

import select
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row

from pgqueue_admin.dialects import errors
from pgqueue_admin.dialects.postgresql.session import Session, on_the_wire, translated

WAIT_SECONDS = 5.0  # for a session while all are lent
SILENT_SECONDS = 2.0  # a server that says nothing for so long is down
IDLE_SECONDS = 600.0

Raw = psycopg.Connection[Any]


class SessionPool:
    """A Pool (see dialects.contract). The one used last is lent first, so that those beyond need grow old and go."""

    def __init__(self, dsn: str, kwargs: dict[str, Any], max_size: int):
        self._dsn, self._kwargs = dsn, {**on_the_wire(dsn), **kwargs}
        self._room = threading.BoundedSemaphore(max_size)
        self._idle: deque[tuple[float, Raw]] = deque()
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[Session]:
        if not self._room.acquire(timeout=WAIT_SECONDS):
            raise errors.DatabaseDown(f"every session was in use for {WAIT_SECONDS:g} s")
        try:
            raw = self._idle_one() or self._new_one()
            try:
                yield Session(raw)
            finally:
                self._give_back(raw)
        finally:
            self._room.release()

    def close(self) -> None:
        """Those that are lent close when they come back."""
        self._closed = True
        self._drop_idle_since(float("inf"))

    def _new_one(self) -> Raw:
        limit = round(SILENT_SECONDS)
        with translated():
            return psycopg.connect(
                self._dsn, autocommit=True, row_factory=namedtuple_row, connect_timeout=limit, **self._kwargs
            )

    def _idle_one(self) -> Raw | None:
        try:
            _, raw = self._idle.pop()
        except IndexError:
            return None
        if _answers(raw):
            return raw
        raw.close()
        self._drop_idle_since(float("inf"))  # none of them fares better, and each would cost its time
        return None

    def _give_back(self, raw: Raw) -> None:
        if self._closed or not _at_rest(raw):
            raw.close()
        else:
            self._idle.append((time.monotonic(), raw))
        self._drop_idle_since(time.monotonic() - IDLE_SECONDS)

    def _drop_idle_since(self, instant: float) -> None:
        while self._idle and self._idle[0][0] < instant:
            try:
                self._idle.popleft()[1].close()
            except IndexError:
                return


def _at_rest(raw: Raw) -> bool:
    return not raw.closed and raw.info.transaction_status == TransactionStatus.IDLE


def _answers(raw: Raw) -> bool:
    """Asked for nothing, as a driver's own check, but with an end to the waiting: a frozen server never says no."""
    try:
        raw.pgconn.send_query(b"")
        poll = select.poll()  # select() takes no descriptor above 1023, and open streams use them up
        poll.register(raw.fileno(), select.POLLIN)
        while raw.pgconn.is_busy():
            if not poll.poll(SILENT_SECONDS * 1000):
                return False
            raw.pgconn.consume_input()
        while raw.pgconn.get_result():
            pass
        return _at_rest(raw)
    except psycopg.Error:
        return False

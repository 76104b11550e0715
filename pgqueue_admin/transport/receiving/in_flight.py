"""Rows of a queue that this process has in flight, and the low-water mark to receive from."""

import threading
from collections.abc import Collection
from typing import NamedTuple


class InFlightRows:
    """Rows in flight in this process, by seq. PostgreSQL releases a row at the first failed statement, before the
    failure is recorded; a slot that receives it again waits until the other slot has recorded it."""

    longest = 5.0  # seconds; a handler that ignores the failed statement may run for longer

    def __init__(self) -> None:
        self._rows: set[int] = set()
        self._changed = threading.Condition()
        self._waiting = 0

    def take(self, seqs: Collection[int]) -> None:
        if not self._rows.isdisjoint(seqs):
            self._wait(seqs)
        self._rows.update(seqs)

    def let_go(self, seqs: Collection[int]) -> None:
        self._rows.difference_update(seqs)
        if self._waiting:
            with self._changed:
                self._changed.notify_all()

    def _wait(self, seqs: Collection[int]) -> None:
        with self._changed:
            self._waiting += 1  # before the check: a later let_go notifies
            self._changed.wait_for(lambda: self._rows.isdisjoint(seqs), self.longest)
            self._waiting -= 1


# Receives start behind the dead rows of earlier ones, which vacuum may not have removed yet.
class LowWaterMark(NamedTuple):
    """Receive from this seq. The turn changes if a row returns after the mark was read."""

    seq: int
    turn: int


class LowWaterMarks:
    """The low-water mark. Each peek resets it to the true minimum, so a row committed late below it waits for one peek
    at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mark = LowWaterMark(0, 0)

    @property
    def mark(self) -> LowWaterMark:
        return self._mark

    def next_from(self, most: int) -> LowWaterMark:
        """The mark for a receive of up to ``most`` rows; the next one starts behind them, else it would scan these rows
        in flight first.
        """
        with self._lock:
            mark = self._mark
            self._mark = LowWaterMark(mark.seq + most, mark.turn)
            return mark

    def peeked(self, head: int) -> None:
        with self._lock:
            self._mark = LowWaterMark(head, self._mark.turn + 1)

    def taken(self, seq: int, since: LowWaterMark) -> None:
        """Advance: all rows from mark to seq are taken or locked. Not if a row has returned meanwhile."""
        with self._lock:
            if since.turn == self._mark.turn and seq >= self._mark.seq:
                self._mark = LowWaterMark(seq + 1, since.turn)

    def came_back(self, seq: int) -> None:
        """Move back: a receive was rolled back, and its row is to be received next."""
        with self._lock:
            self._mark = LowWaterMark(min(seq, self._mark.seq), self._mark.turn + 1)

"""From where to receive: past the dead rows of what was taken, which vacuum may not have removed yet."""

import threading
from typing import NamedTuple


class LowWaterMark(NamedTuple):
    """Receive from this seq. The turn tells whether something came back since the mark was read."""

    seq: int
    turn: int


class LowWaterMarks:
    """Each peek sets it anew from the true minimum, so what was committed late below it waits for one peek at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mark = LowWaterMark(0, 0)

    @property
    def mark(self) -> LowWaterMark:
        return self._mark

    def next_from(self, most: int) -> LowWaterMark:
        """The mark, for a receive of up to ``most``; the next one starts behind these, or it would walk through them,
        in hand here already, to get to its own.
        """
        with self._lock:
            mark = self._mark
            self._mark = LowWaterMark(mark.seq + most, mark.turn)
            return mark

    def peeked(self, head: int) -> None:
        with self._lock:
            self._mark = LowWaterMark(head, self._mark.turn + 1)

    def taken(self, seq: int, since: LowWaterMark) -> None:
        """All from mark to seq is taken or locked. If something came back meanwhile, it must not be passed."""
        with self._lock:
            if since.turn == self._mark.turn and seq >= self._mark.seq:
                self._mark = LowWaterMark(seq + 1, since.turn)

    def came_back(self, seq: int) -> None:
        """A receive was rolled back: its row is the next to be taken again."""
        with self._lock:
            self._mark = LowWaterMark(min(seq, self._mark.seq), self._mark.turn + 1)

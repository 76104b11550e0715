"""Rows of a queue that this process has in flight, and the low-water mark to receive from."""

import threading
from collections.abc import Collection
from typing import NamedTuple


# Which rows are in hand here: PostgreSQL gives one up at the first refused statement, before that is counted.
class InFlightRows:
    """By seq. Who receives a row that another slot still has waits until that attempt is counted."""

    longest = 5.0  # seconds: a handler that takes no notice of the refusal may go on for longer

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
            self._waiting += 1  # before the look: who lets go after it will tell
            self._changed.wait_for(lambda: self._rows.isdisjoint(seqs), self.longest)
            self._waiting -= 1


# From where to receive: past the dead rows of what was taken, which vacuum may not have removed yet.
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

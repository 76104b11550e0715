"""When messages arrived. The tables do not say, but whoever watches the tail grow knows."""

from bisect import bisect_left
from datetime import datetime

_MOST = 4096


class Arrivals:
    """A seq had arrived when the tail was first seen at or past it: exact to one sample."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._times: list[datetime] = []

    def note(self, tail_seq: int, at: datetime) -> None:
        """Only growth counts: a tail that left takes nothing back. The first note is where watching began."""
        if not self._seqs or tail_seq > self._seqs[-1]:
            self._seqs.append(tail_seq)
            self._times.append(at)
        if len(self._seqs) > _MOST:
            self._thin()

    def of(self, seq: int) -> datetime | None:
        """None for what was there before watching began, and for what was not seen yet."""
        place = bisect_left(self._seqs, seq)
        return self._times[place] if 0 < place < len(self._seqs) else None

    def before(self, seq: int) -> datetime | None:
        """The instant before which it had arrived; None where ``of`` knows when, and for what was not seen yet."""
        return self._times[0] if self._seqs and seq <= self._seqs[0] else None

    def forget_below(self, seq: int) -> None:
        """What is before the head is never asked for again; the last note below it stays as the beginning."""
        place = bisect_left(self._seqs, seq)
        if place > _MOST // 8:
            del self._seqs[: place - 1], self._times[: place - 1]

    def _thin(self) -> None:
        """Drop every second note of the older half: a seq there then seems to have arrived a little later."""
        half = len(self._seqs) // 2
        del self._seqs[1:half:2], self._times[1:half:2]

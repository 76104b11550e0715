"""The result of measuring one queue."""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime
from typing import Self

PROBES = 192  # past the cap: places of the seq span that are probed
FEW = 5  # fewer hits are too few for an estimate
BETWEEN = 50  # rows between two marks: the precision of counting rows below a seq


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Depth = ready + in flight + expired, each counted, capped (at least so many) or an estimate, as ``how`` says.

    In flight is always a hint: rows locked or being deleted by a running transaction. None if unknown: on a standby or
    in a copy without an index such rows count as ready; where reads skip locked rows, they are in none of the figures.
    """

    at: datetime  # the server's clock, or the ``now`` that was passed
    depth: int = 0
    ready: int = 0
    in_flight: int | None = 0
    expired: int = 0
    how: str = "counted"
    head_seq: int | None = None
    tail_seq: int | None = None
    ready_seq: int | None = None  # the first seq that is neither in flight nor expired
    marks: tuple[int, ...] = ()  # seq of every BETWEEN-th row scanned
    seconds: float = 0.0  # duration of the measurement in the database
    sent_total: int | None = None  # the sequence's last value; None if the role may not read it
    step: int | None = 1  # increment of seq per message; None if seq does not count messages
    delayed: int | None = None
    delayed_how: str = "counted"
    overdue: int | None = None  # delayed messages that are due and still there
    next_due_at: datetime | None = None
    oldest_at: datetime | None = None  # when its first ready message arrived, if the table stores that
    oldest_how: str = "exact"

    @property
    def head(self) -> int | None:
        """Position of the message received next: it advances when someone receives."""
        return self.head_seq

    @property
    def to_receive(self) -> int:
        """Rows present for receivers, including those in flight and expired."""
        return self.depth

    @property
    def rows(self) -> int | None:
        """Exact number of rows in the table; None if not all were counted."""
        return self.depth if self.how == "counted" else None

    @property
    def span(self) -> int:
        """Depth as a reader of the seq range alone would report it (T10). Never the depth: gaps count."""
        if self.head_seq is None or self.tail_seq is None:
            return 0
        return self.tail_seq - self.head_seq + 1

    def moved_on(self, before: Self) -> bool:
        """Whether the rows prove a receive since ``before``, which was not at an empty queue."""
        if before.head is not None and self.head is not None and self.head > before.head:
            return True
        return before.how == self.how == "counted" and self.depth < before.depth

    def below(self, seq: int) -> float:
        """Estimated number of rows below ``seq``: a gap between two rows holds none."""
        return self._below(seq, self.depth, self.span)

    def _below(self, seq: int, depth: int, span: int) -> float:
        passed = bisect_left(self.marks, seq)
        if not passed:
            return 0.0
        known, mark = float(BETWEEN * (passed - 1)), self.marks[passed - 1]
        if passed < len(self.marks):
            return known + BETWEEN * (seq - mark) / (self.marks[passed] - mark)
        return min(float(depth), known + (seq - mark) * depth / span)

"""The result of measuring one queue."""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime
from typing import Self

PROBES = 192  # past the cap: so many places of the span are looked at
FEW = 5  # fewer hits than this say nothing of how many rows there are
BETWEEN = 50  # rows from one mark to the next: as near as it is known how many lay below a seq


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Depth = ready + in flight + expired, each counted, capped (at least so many) or an estimate, as ``how`` says.

    In flight is a hint in any case: rows whose deleting transaction still runs, or which it has locked. None where
    it is not known: on a standby or in a copy without an index they count as ready, and where locked rows are read past
    they are in none of the figures.
    """

    at: datetime  # the server's clock, or the ``now`` that was passed
    depth: int = 0
    ready: int = 0
    in_flight: int | None = 0
    expired: int = 0
    how: str = "counted"
    head_seq: int | None = None
    tail_seq: int | None = None
    ready_seq: int | None = None  # the first that is neither in flight nor expired
    marks: tuple[int, ...] = ()  # seq of the first of each BETWEEN rows that were looked through
    seconds: float = 0.0  # how long the database looked
    sent_total: int | None = None  # the sequence's last value; None where the role may not read it
    step: int | None = 1  # what seq grows by with each message; None where its numbers count nothing
    delayed: int | None = None
    delayed_how: str = "counted"
    overdue: int | None = None  # delayed messages that are due and still there
    next_due_at: datetime | None = None
    oldest_at: datetime | None = None  # where the table itself says since when its first ready message waits
    oldest_how: str = "exact"

    @property
    def head(self) -> int | None:
        """Where the message stands that is received next: this moves on when somebody receives."""
        return self.head_seq

    @property
    def to_receive(self) -> int:
        """Rows that are there for whoever receives, also those in hand and expired ones."""
        return self.depth

    @property
    def rows(self) -> int | None:
        """In the table, exactly; None where they are not all counted."""
        return self.depth if self.how == "counted" else None

    @property
    def span(self) -> int:
        """What a reader of the seq range alone would report (T10). Never the depth: gaps count."""
        if self.head_seq is None or self.tail_seq is None:
            return 0
        return self.tail_seq - self.head_seq + 1

    def moved_on(self, before: Self) -> bool:
        """Whether rows prove that somebody received since that look, which was not at an empty queue."""
        if before.head is not None and self.head is not None and self.head > before.head:
            return True
        return before.how == self.how == "counted" and self.depth < before.depth

    def below(self, seq: int) -> float:
        """About how many of its rows lay below ``seq``: a gap between two rows holds none."""
        return self._below(seq, self.depth, self.span)

    def _below(self, seq: int, depth: int, span: int) -> float:
        passed = bisect_left(self.marks, seq)
        if not passed:
            return 0.0
        known, mark = float(BETWEEN * (passed - 1)), self.marks[passed - 1]
        if passed < len(self.marks):
            return known + BETWEEN * (seq - mark) / (self.marks[passed] - mark)
        return min(float(depth), known + (seq - mark) * depth / span)

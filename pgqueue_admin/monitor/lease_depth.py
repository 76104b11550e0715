"""Depth of the lease queue: available, locked, lock expired, released for later."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from pgqueue_admin.dialects.statements import Statements
from pgqueue_admin.monitor.depth_result import FEW, PROBES, QueueDepth
from pgqueue_admin.monitor.queue_table import QueueTable

_OURS = {
    "place": "lease_place",
    "order": "lease_order",
    "is_due": "lease_is_due",
    "since": "lease_since",
    "later": "lease_later",
}
_ORIGINAL = {
    "place": "original_place",
    "order": "original_order",
    "is_due": "original_is_due",
    "since": "original_since",
    "later": "original_later",
}


@dataclass(frozen=True, slots=True)
class LeaseDepth(QueueDepth):
    """Depth = ready (waiting) + in flight (locked) + expired (lock expired). Delayed: released for later. Locks are
    exact, no hint. ``head_seq`` and ``tail_seq`` are the lowest and the highest id.

    ``first`` and ``last`` are positions in claim order, which is not id order: a released message goes to the end.
    """

    first: int | None = None
    last: int | None = None

    @property
    def head(self) -> int | None:
        return self.first

    @property
    def rows(self) -> int | None:
        return self.depth + (self.delayed or 0) if self.how == self.delayed_how == "counted" else None

    @property
    def to_receive(self) -> int:
        return self.ready

    def moved_on(self, before: Self) -> bool:
        """Fewer rows prove nothing: expired locks are ended without any receiver."""
        return before.first is not None and self.first is not None and self.first > before.first

    def below(self, seq: int) -> float:
        return self._below(seq, self.ready, (self.last or 0) - (self.first or 0) + 1)


def query(monitor: Statements, table: QueueTable, common: dict[str, Any]) -> Any:
    """The statement, also for a table without our columns."""
    parts = _OURS if table.has_attempts else _ORIGINAL
    return monitor.lease(**common, **{name: getattr(monitor, part) for name, part in parts.items()})


def read(table: QueueTable, row: Any, cap: int) -> LeaseDepth:
    parts = {name: _part(row, name, cap) for name in ("waiting", "locked", "over")}
    later, how_later = _part(row, "later", cap)
    how = max((each.how for each in parts.values()), key=_HOWS.index)
    ready, locked, over = (cap if how == "capped" and each.number > cap else each.number for each in parts.values())
    return LeaseDepth(
        row.at,
        ready + locked + over,
        ready,
        locked,
        over,
        how,
        row.head,
        row.tail,
        marks=tuple(map(int, row.marks or ())),
        seconds=row.seconds,
        sent_total=row.sent_total,
        step=table.sequence_step,
        delayed=later,
        delayed_how=how_later,
        next_due_at=row.next_due,
        oldest_at=row.oldest_at,
        oldest_how="exact" if table.has_attempts else "estimate",
        first=None if row.first is None else int(row.first),
        last=None if row.last is None else int(row.last),
    )


_HOWS = ("counted", "estimate", "capped")


class _Part(NamedTuple):
    number: int
    how: str


def _part(row: Any, name: str, cap: int) -> _Part:
    """Rows of one state: counted up to the cap, else estimated from the probes that hit one, or at least the cap."""
    counted, hits = getattr(row, name), getattr(row, f"hits_{name}")
    if counted <= cap:
        return _Part(counted, "counted")
    estimate = round((row.tail - row.head + 1) * hits / PROBES) if hits >= FEW else 0
    return _Part(estimate, "estimate") if estimate > cap else _Part(cap, "capped")

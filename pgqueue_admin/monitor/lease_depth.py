"""How much waits in the lease queue, is locked, has a lock that is over, or was released for later."""

from dataclasses import dataclass
from typing import Any, Self

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor.queue_depth import FEW, PROBES, QueueDepth
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
    """Ready waits, in flight is locked, expired has a lock that is over: these are its depth. Delayed was released for
    later. A lock is a fact, no hint. ``head_seq`` and ``tail_seq`` are the lowest and the highest id.

    ``first`` and ``last`` are places in the order of claims, which is not that of ids: what comes back goes to its end.
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
        """Rows that leave prove nothing: locks that are over are ended without anybody who receives."""
        return before.first is not None and self.first is not None and self.first > before.first

    def below(self, seq: int) -> float:
        return self._below(seq, self.ready, (self.last or 0) - (self.first or 0) + 1)


def asked(table: QueueTable, common: dict[str, Any]) -> Any:
    """The statement, also of a table that has no column of ours."""
    monitor = postgresql().monitor
    parts = _OURS if table.has_attempts else _ORIGINAL
    return monitor.lease(**common, **{name: getattr(monitor, part) for name, part in parts.items()})


def read(table: QueueTable, row: Any, cap: int) -> LeaseDepth:
    locked, over, later = min(row.locked, cap), min(row.over, cap), min(row.later, cap)
    ready, how = row.waiting, "counted"
    if row.waiting > cap:
        ready, how = _estimate(row, cap)
    if max(row.locked, row.over) > cap:
        how = "capped"
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
        delayed_how="capped" if row.later > cap else "counted",
        next_due_at=row.next_due,
        oldest_at=row.oldest_at,
        oldest_how="exact" if table.has_attempts else "estimate",
        first=None if row.first is None else int(row.first),
        last=None if row.last is None else int(row.last),
    )


def _estimate(row: Any, cap: int) -> tuple[int, str]:
    """Of all rows from the probes, less those that are counted; at least the cap where that says nothing."""
    others = row.locked + row.over + row.later
    all_rows = round((row.tail - row.head + 1) * row.hits / PROBES) if row.hits >= FEW else 0
    if max(row.locked, row.over, row.later) > cap or all_rows - others <= cap:
        return cap, "capped"
    return all_rows - others, "estimate"

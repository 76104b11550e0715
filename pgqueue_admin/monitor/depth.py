"""How much waits in a queue, measured without a lock on any row (C2; wire sheet 2.7, 3)."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind

CAP = 10_000
PROBES = 192  # past the cap: so many places of the span are looked at
PAGES = 200  # of a delayed table, which has no seq, past the cap: in so many its rows are counted
FEW = 5  # fewer hits than this say nothing of how many rows there are
WINDOW = 1_000  # rows from the head among which messages in flight are looked for, past the cap
BETWEEN = 50  # rows from one mark to the next: as near as it is known how many lay below a seq
LATE = 1_000  # seq is taken at insert, not at commit: a row may become visible so far below a newer head
BOTTOM = -(2**63)
NO_SKEW = timedelta()

Asked = tuple[Any, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Depth = ready + in flight + expired, each counted, capped (at least so many) or an estimate, as ``how`` says.

    In flight is a hint in any case: rows whose deleting transaction still runs, or which it has locked. None where
    it is not known, on a standby or in a copy without an index: there they count as ready.
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

    @property
    def span(self) -> int:
        """What a reader of the seq range alone would report (T10). Never the depth: gaps count."""
        if self.head_seq is None or self.tail_seq is None:
            return 0
        return self.tail_seq - self.head_seq + 1

    def below(self, seq: int) -> float:
        """About how many of its rows lay below ``seq``: a gap between two rows holds none."""
        passed = bisect_left(self.marks, seq)
        if not passed:
            return 0.0
        known, mark = float(BETWEEN * (passed - 1)), self.marks[passed - 1]
        if passed < len(self.marks):
            return known + BETWEEN * (seq - mark) / (self.marks[passed] - mark)
        return min(float(self.depth), known + (seq - mark) * self.depth / self.span)


def measure(
    connection: Connection,
    table: QueueTable,
    *,
    cap: int = CAP,
    now: datetime | None = None,
    low_water: int | None = None,
    skew: timedelta = NO_SKEW,
) -> QueueDepth:
    """Measure one queue. Below the seq ``low_water`` nothing is looked for, so that dead rows there cost nothing.

    ``skew``: how far the due times of a delayed table are off, as ``skew.read`` tells.
    """
    query, params = asked(table, cap=cap, now=now, low_water=low_water, skew=skew)
    return read(table, connection.one(query, params), cap)


def asked(
    table: QueueTable,
    *,
    cap: int = CAP,
    now: datetime | None = None,
    low_water: int | None = None,
    skew: timedelta = NO_SKEW,
) -> Asked:
    """The statement that measures this table and its values, for a caller that asks many at once."""
    monitor = postgresql().monitor
    if table.kind is TableKind.DELAYED:
        query = monitor.delayed(table=table.address, cap=cap, pages=PAGES, bytes=monitor.heap_bytes)
        return query, {"now": now, "skew": skew, "oid": table.oid}
    if not table.seq_indexed:
        return monitor.depth_unindexed(table=table.address, cap=cap), {"now": now}
    parts: dict[str, Any] = {"sent": monitor.not_told}
    if table.sequence_is_readable:
        parts = {"sent": monitor.sent, "sequence": table.sequence, "increment": table.sequence_step or 1}
    query = monitor.depth(table=table.address, cap=cap, probes=PROBES, few=FEW, window=WINDOW, step=BETWEEN, **parts)
    return query, {"now": now, "low": BOTTOM if low_water is None else low_water}


def read(table: QueueTable, row: Any, cap: int = CAP) -> QueueDepth:
    """The figures in what ``asked`` brought back."""
    if table.kind is TableKind.DELAYED:
        return _delayed(row, cap)
    seen = _queue(row, cap)
    if table.descends:  # what is received next is the newest: it tells nothing of the one that waits longest
        return replace(seen, step=None, ready_seq=None)
    return replace(seen, step=table.sequence_step)


def _queue(row: Any, cap: int) -> QueueDepth:
    facts = {"head_seq": row.head, "tail_seq": row.tail, "ready_seq": row.ready_head, "sent_total": row.sent_total}
    facts |= {"seconds": row.seconds, "marks": tuple(row.marks or ())}
    if not row.more:
        return _parted(row, row.rows, row.expired, "counted", facts)
    estimate = round((row.tail - row.head + 1) * row.hits / PROBES) if row.hits >= FEW else 0
    if estimate <= cap:
        return _parted(row, cap, row.expired, "capped", facts)
    return _parted(row, estimate, round(estimate * row.hits_expired / row.hits), "estimate", facts)


def _parted(row: Any, depth: int, expired: int, how: str, facts: dict[str, Any]) -> QueueDepth:
    """More may be found than the depth has: a row past the cap, or probes that hit what is in flight and expired."""
    taken = None if row.in_flight is None else min(row.in_flight, depth)
    expired = min(expired, depth - (taken or 0))
    return QueueDepth(row.at, depth, depth - (taken or 0) - expired, taken, expired, how, **facts)


def _delayed(row: Any, cap: int) -> QueueDepth:
    """Of the soonest, up to the cap, it is known which are due."""
    rows, how = row.rows, "counted"
    if row.rows > cap:
        rows, how = (row.estimate, "estimate") if row.estimate > cap else (cap, "capped")
    overdue = min(row.overdue, cap)
    return QueueDepth(row.at, rows, how=how, delayed=rows, delayed_how=how, overdue=overdue, next_due_at=row.next_due)

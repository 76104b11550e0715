"""Depth of a queue, measured without row locks (C2; wire sheet 2.7, 3)."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.statements import Statements
from pgqueue_admin.monitor import lease_depth
from pgqueue_admin.monitor.depth_result import BETWEEN, FEW, PROBES, QueueDepth
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind

CAP = 10_000
PAGES = 200  # pages of a delayed table sampled past the cap: it has no seq to probe
WINDOW = 1_000  # rows from the head to search for messages in flight, past the cap
LATE = 1_000  # seq is drawn at insert, not at commit: a row may become visible this far below a newer head
BOTTOM = -(2**63)
NO_SKEW = timedelta()

Asked = tuple[Any, dict[str, Any]]


def measure(
    connection: Connection,
    table: QueueTable,
    *,
    cap: int = CAP,
    now: datetime | None = None,
    low_water: int | None = None,
    skew: timedelta = NO_SKEW,
) -> QueueDepth:
    """Measure one queue. Rows below seq ``low_water`` are not scanned, so dead rows there cost nothing.

    ``skew``: the due times' skew of a delayed table, as from ``clock_skew.read``.
    """
    query, params = asked(connection.dialect.monitor, table, cap=cap, now=now, low_water=low_water, skew=skew)
    return read(table, connection.one(query, params), cap)


def asked(
    monitor: Statements,
    table: QueueTable,
    *,
    cap: int = CAP,
    now: datetime | None = None,
    low_water: int | None = None,
    skew: timedelta = NO_SKEW,
) -> Asked:
    """The statement of ``monitor`` that measures this table, and its parameters, for batching."""
    if table.kind is TableKind.DELAYED:
        query = monitor.delayed(table=table.address, cap=cap, pages=PAGES, bytes=monitor.heap_bytes)
        return query, {"now": now, "skew": skew, "oid": table.oid}
    common: dict[str, Any] = {
        "table": table.address,
        "cap": cap,
        "probes": PROBES,
        "step": BETWEEN,
        **_sent(monitor, table),
    }
    if table.kind is TableKind.LEASE:
        return lease_depth.query(monitor, table, common), {"now": now}
    if not table.seq_indexed:
        return monitor.depth_unindexed(table=table.address, cap=cap), {"now": now}
    query = monitor.depth(few=FEW, window=WINDOW, **common)
    return query, {"now": now, "low": BOTTOM if low_water is None else low_water}


def _sent(monitor: Statements, table: QueueTable) -> dict[str, Any]:
    if not table.sequence_is_readable:
        return {"sent": monitor.not_told}
    increment = table.sequence_step or 1
    return {"sent": monitor.sent, "sequence": table.sequence, "increment": increment}


def read(table: QueueTable, row: Any, cap: int = CAP) -> QueueDepth:
    """The depth from the result of ``asked``."""
    if table.kind is TableKind.DELAYED:
        return _delayed(row, cap)
    if table.kind is TableKind.LEASE:
        return lease_depth.read(table, row, cap)
    seen = _queue(row, cap)
    if table.descends:  # the newest is received next, which says nothing about the oldest
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
    """Limit the parts to the depth: more may be found, by a row past the cap or by probes that hit rows in flight and
    expired."""
    taken = None if row.in_flight is None else min(row.in_flight, depth)
    expired = min(expired, depth - (taken or 0))
    return QueueDepth(row.at, depth, depth - (taken or 0) - expired, taken, expired, how, **facts)


def _delayed(row: Any, cap: int) -> QueueDepth:
    """Only the soonest rows, up to the cap, are known to be due or not."""
    rows, how = row.rows, "counted"
    if row.rows > cap:
        rows, how = (row.estimate, "estimate") if row.estimate > cap else (cap, "capped")
    overdue = min(row.overdue, cap)
    return QueueDepth(row.at, rows, how=how, delayed=rows, delayed_how=how, overdue=overdue, next_due_at=row.next_due)


# Table sizes, including indexes and TOAST.
def table_sizes(connection: Connection, tables: Iterable[QueueTable]) -> dict[int, int]:
    """Bytes by oid; empty if one table is locked right now: then use the catalog's older sizes."""
    try:
        rows = connection.all(connection.dialect.monitor.sizes(), {"oids": [table.oid for table in tables]})
    except DatabaseDown:
        raise
    except DatabaseError:
        return {}
    return {row.oid: row.size_bytes for row in rows if row.size_bytes is not None}

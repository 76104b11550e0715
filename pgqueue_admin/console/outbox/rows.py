"""Outboxes as their pages show them: the order, and the sentence that opens the page."""

from datetime import datetime
from typing import NamedTuple

from pgqueue_admin.alerts.outboxes import OutboxState
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.monitor.in_doubt import InDoubt
from pgqueue_admin.monitor.outboxes import COUNTED_TO, OutboxTable, PendingRecord
from pgqueue_admin.services import followed_outboxes


class WaitingRecord(NamedTuple):
    """``seen_at``: since when it is seen, where its table does not say since when it waits."""

    record: PendingRecord
    seen_at: datetime | None


def waiting(connection: Connection, table: OutboxTable, found: list[PendingRecord]) -> list[WaitingRecord]:
    """Raises DatabaseError."""
    undated = [each.id for each in found if not each.created_at]
    seen = followed_outboxes.first_seen(connection, table.address, undated)
    return [WaitingRecord(each, seen.get(each.id)) for each in found]


def in_order(states: list[OutboxState]) -> list[OutboxState]:
    """Stuck ones of ours first, then by what waits, then by name."""
    order = {"crit": 0, "warn": 1, "": 2}
    return sorted(states, key=lambda each: (order[tone(each)], -each.figures.pending, each.name))


def tone(state: OutboxState) -> str:
    if state.is_stuck and state.endpoint:
        return "crit"
    troubled = _is_undated(state) or state.behind or state.figures.unread or state.figures.table.missing_indexes
    return "warn" if state.is_stuck or troubled else ""


def verdict(rows: list[OutboxState], in_doubt: list[InDoubt]) -> tuple[str, str]:
    """Its state and its sentence."""
    stuck = [row for row in rows if row.is_stuck]
    if ours := [row for row in stuck if row.endpoint]:
        return "crit", f"{_sends(ours)} of {_names(ours)} {_are(ours)} committed and not sent"
    if late := [each for each in in_doubt if each.is_late]:
        return "warn", f"{pluralize(len(late), 'transaction')} over several databases {_is_or_are(len(late))} in doubt"
    if stuck:
        return "warn", f"{_sends(stuck)} of {_names(stuck)} {_are(stuck)} committed and not sent, by programs of others"
    if behind := [row for row in rows if row.behind]:
        return "warn", f"Clean-up of {_names(behind)} is behind"
    if undated := [row for row in rows if _is_undated(row)]:
        return "warn", f"{_sends(undated)} of {_names(undated)} {_wait(undated)} to be sent, since when is not known"
    if unread := [row for row in rows if row.figures.unread]:
        return "warn", f"{pluralize(len(unread), 'outbox', 'outboxes')} cannot be read"
    return ("ok", "Nothing is stuck between commit and send") if rows else ("", "No outbox")


def _sends(rows: list[OutboxState]) -> str:
    count = sum(row.figures.pending for row in rows)
    capped = any(row.figures.pending > COUNTED_TO for row in rows)
    return f"At least {pluralize(count, 'record')}" if capped else pluralize(count, "record")


def _is_undated(state: OutboxState) -> bool:
    """Something waits, and nobody says since when: it may be on its way, or stuck."""
    return bool(state.figures.pending) and state.age is None


def _wait(rows: list[OutboxState]) -> str:
    return "waits" if sum(row.figures.pending for row in rows) == 1 else "wait"


def _are(rows: list[OutboxState]) -> str:
    return _is_or_are(sum(row.figures.pending for row in rows))


def _is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"


def _names(rows: list[OutboxState]) -> str:
    first = [row.name for row in rows[:3]]
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return ", ".join(first) + more

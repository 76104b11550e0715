"""Outboxes for their pages: their order, and the opening sentence."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from pgqueue_admin.alerts.outboxes import OutboxState
from pgqueue_admin.console.messages.detail import body, summary
from pgqueue_admin.console.messages.detail.body import ShownBody
from pgqueue_admin.console.messages.detail.summary import MessageSummary
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting.names import listed
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.monitor.in_doubt import InDoubt
from pgqueue_admin.monitor.outboxes import COUNTED_TO, OutboxTable, PendingRecord
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.outbox import content, first_seen
from pgqueue_admin.services.outbox.content import RecordedMessage

LISTED = 200  # messages of a record


class WaitingRecord(NamedTuple):
    """``seen_at``: when it was first seen waiting, if its table has no time."""

    record: PendingRecord
    seen_at: datetime | None


def waiting(connection: Connection, table: OutboxTable, found: list[PendingRecord]) -> list[WaitingRecord]:
    """Raises DatabaseError."""
    undated = [each.id for each in found if not each.created_at]
    seen = first_seen.first_seen(connection, table.address, undated)
    return [WaitingRecord(each, seen.get(each.id)) for each in found]


class RecordedRow(NamedTuple):
    """One message of a record. ``place``: counts from 1, and selects it in the page's address."""

    place: int
    id: str
    type: str
    kind: str
    to: str
    when: str
    due_at: datetime | None
    size: int


class ShownRecord(NamedTuple):
    """``messages``: None if the record cannot be read as a list of them. ``chosen``: place of the selected one."""

    messages: list[RecordedRow] | None
    chosen: int = 0
    facts: MessageSummary | None = None
    body: ShownBody | None = None
    more: int = 0  # messages that the page does not list


def recorded(operations: str, access: ContentAccess, asked: Mapping[str, str]) -> ShownRecord:
    """``asked``: the query of the page, ``send=2&body=hex``; bad values show the first."""
    found = content.messages_of(operations)
    if not found:
        return ShownRecord(None if found is None else [])
    listed = [_recorded_row(place, each) for place, each in enumerate(found[:LISTED], 1)]
    place = parse_int(asked.get("send", ""), len(listed)) or 1
    message = found[place - 1]
    facts, raw = summary.of_recorded(message, access), message.body
    drawn = body.of_copy(
        lambda start, length: raw[start : start + length],
        len(raw), facts.content_type, asked, access, message.types,
    )  # fmt: skip
    return ShownRecord(listed, place, facts, drawn, len(found) - len(listed))


def _recorded_row(place: int, each: RecordedMessage) -> RecordedRow:
    return RecordedRow(place, each.id, each.type, each.kind, each.to, each.when, each.due_at, len(each.body))


def in_order(states: list[OutboxState]) -> list[OutboxState]:
    """Sort by tone, so stuck ones of ours first; then by pending records, then by name."""
    order = {"crit": 0, "warn": 1, "": 2}
    return sorted(states, key=lambda each: (order[tone(each)], -each.figures.pending, each.name))


def tone(state: OutboxState) -> str:
    if state.is_stuck and state.endpoint:
        return "crit"
    troubled = _is_undated(state) or state.behind or state.figures.unread or state.figures.table.missing_indexes
    return "warn" if state.is_stuck or troubled else ""


def verdict(rows: list[OutboxState], in_doubt: list[InDoubt], unlooked: Collection[str] = ()) -> tuple[str, str]:
    """The page's state and sentence. ``unlooked``: databases whose outboxes are unknown now."""
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
    if unlooked:
        return "warn", f"Nothing is known of outboxes in {listed(sorted(unlooked), 3)}"
    if unread := [row for row in rows if row.figures.unread]:
        return "warn", f"{pluralize(len(unread), 'outbox', 'outboxes')} cannot be read"
    return ("ok", "Nothing is stuck between commit and send") if rows else ("", "No outbox")


def _sends(rows: list[OutboxState]) -> str:
    count = sum(row.figures.pending for row in rows)
    capped = any(row.figures.pending > COUNTED_TO for row in rows)
    return f"At least {pluralize(count, 'record')}" if capped else pluralize(count, "record")


def _is_undated(state: OutboxState) -> bool:
    """Records wait without a time: they may be on their way, or stuck."""
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

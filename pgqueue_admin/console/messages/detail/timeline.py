"""What happened to a message, in order, each step with the time since the one before."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from pgqueue_admin.archive.store import ELSEWHERE
from pgqueue_admin.console.messages.detail.summary import MessageSummary
from pgqueue_admin.dialects.out_of_range_times import Beyond
from pgqueue_admin.formatting import archive_events
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import format_int
from pgqueue_admin.services.edited_retry import edited_as
from pgqueue_admin.transport.wire import headers as wire
from pgqueue_admin.transport.wire.type_names import short_type
from pgqueue_admin.transport.wire.wire_times import parse_time


@dataclass(frozen=True, slots=True)
class TimelineStep:
    at: datetime | None
    icon: str
    tone: str
    title: str
    detail: str = ""
    operation: int | None = None
    gap: str = ""
    elsewhere: str = ""  # the id that finds the message where it is now


def steps(facts: MessageSummary, events: list[Any], now: datetime) -> list[TimelineStep]:
    delays = _due(facts) if facts.due_text else _delayed(facts)
    found = [*_sent(facts), *delays, *_waiting(facts, now), *_died(facts), *done(facts, events)]
    found.sort(key=lambda step: (step.at is not None, step.at or now))  # stable: equal times keep their order
    return _with_gaps(found)


def _sent(facts: MessageSummary) -> Iterator[TimelineStep]:
    to = f" to {facts.address.table}" if facts.address else ""
    title = f"Sent by {facts.sender}{to}" if facts.sender else f"Sent{to}"
    related = facts.headers.get(wire.RELATED_TO)
    if facts.sent_at or facts.sender:
        yield TimelineStep(
            facts.sent_at, "send", "", title, _told(("from", facts.sending_machine), ("because of", related))
        )


def _delayed(facts: MessageSummary) -> Iterator[TimelineStep]:
    due = parse_time(facts.headers.get(wire.DELIVER_AT))
    if due and not facts.delayed_retries:
        yield TimelineStep(due, "clock", "", "Due, after a delay", "sent with a time to be delivered at")
    if facts.delayed_retries:
        last = parse_time(facts.headers.get(wire.RETRIES_TIMESTAMP))
        yield TimelineStep(last, "clock", "", f"Delayed retry {facts.delayed_retries}", "the last one before this")


def _due(facts: MessageSummary) -> Iterator[TimelineStep]:
    """Steps of a message in a delayed table: its last failure, and when it is due."""
    if facts.delayed_retries:
        failed = parse_time(facts.headers.get(wire.RETRIES_TIMESTAMP))
        yield TimelineStep(failed, "back", "", f"Failed; delayed retry {facts.delayed_retries} was put here")
    if facts.due_at:
        late = facts.state == "overdue"
        title = "Was due, and nobody has moved it" if late else "Due"
        yield TimelineStep(
            facts.due_at, "clock", "crit" if late else "", title, "moved to the queue of its endpoint then"
        )


def _waiting(facts: MessageSummary, now: datetime) -> Iterator[TimelineStep]:
    if facts.archived is not None:
        return
    if facts.expires_at is not None:
        over = facts.state == "expired"
        title = "Expired: whoever receives it drops it unread" if over else "Expires"
        yield TimelineStep(facts.expires_at, "clock", "crit" if over else "", title, "by the database's clock")
    yield TimelineStep(
        now, "quiet", "", f"Waits in {facts.address.table}" if facts.address else "Waits", "as looked at now"
    )


def _died(facts: MessageSummary) -> Iterator[TimelineStep]:
    row = facts.archived
    if row is None:
        return
    if row.result == "success":
        yield TimelineStep(row.died_at, "ok", "good", f"Archived as {format_int(row.id)}", "this is not a failure")
        return
    elsewhere = row.found_in if row.found_in != row.queue else None
    detail = _told(("", _cause(row)), ("on attempt", row.attempts), ("on", row.machine), ("found in", elsewhere))
    yield TimelineStep(row.died_at, "dead", "crit", f"Dead: archived as {format_int(row.id)}", detail)


def _told(*facts: tuple[str, Any]) -> str:
    """``on attempt 24, on app-2``: only the facts that are known."""
    return ", ".join(f"{word} {fact}".strip() for word, fact in facts if fact)


def _cause(row: Any) -> str:
    return short_type(row.exception_type) if row.exception_type else row.retry_blocked_reason or row.details or ""


def done(facts: MessageSummary, events: list[Any]) -> Iterator[TimelineStep]:
    """What people did with it in the archive, and what followed by itself, which names no person."""
    sent_as = ""  # the new id, if it was edited
    same_id = "" if facts.archived and facts.archived.kind == "lease" else facts.message_id
    for event in events:
        sent_as = _new_id(facts, event) if event.verb in _SENT else sent_as
        title, icon, tone = archive_events.words(event.verb, event.who)
        into = _into(event.target) if event.verb in _SENT else ""
        elsewhere = {"died again": sent_as or same_id, "edited and retried": sent_as}.get(event.verb, "")
        step = TimelineStep(event.at, icon, tone, title, into, event.operation)
        yield replace(step, elsewhere=elsewhere)


_SENT = {"retried", "edited and retried"}


def _into(target: str | None) -> str:
    if target == ELSEWHERE:
        return "into a queue that you may not see"
    return f"into {target}" if target else ""


def _new_id(facts: MessageSummary, event: Any) -> str:
    """The id of the message it was edited into; empty if it was not edited, or that is unknown.

    Empty for a lease message of an operation: the queue numbers it, and its facts show the number.
    """
    if event.verb != "edited and retried" or facts.archived is None or facts.archive_id is None:
        return ""
    if event.target == ELSEWHERE:
        return ""
    if facts.archived.kind == "lease" and event.operation:
        return ""
    return edited_as(facts.archive_id, event.operation)


def _with_gaps(found: list[TimelineStep]) -> list[TimelineStep]:
    """Add ``123 ms later`` where both times are known and in order."""
    told = found[:1]
    for before, step in pairwise(found):
        gap = _seconds(before.at, step.at)
        told.append(replace(step, gap=f"{duration(gap)} later") if gap > 0 else step)
    return told


def _seconds(begin: datetime | None, end: datetime | None) -> float:
    if begin is None or end is None or Beyond in (type(begin), type(end)):
        return 0
    return (end - begin).total_seconds()

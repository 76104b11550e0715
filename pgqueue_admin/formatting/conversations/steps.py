"""The story of a message: the events of its copies in order, each with its source and the time since the previous
one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from pgqueue_admin.formatting import archive_events
from pgqueue_admin.formatting.conversations.copy import MessageCopy, positive
from pgqueue_admin.formatting.conversations.sighting import DEAD, WAITING, Sighting, SightingAct, SightingSource
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.names import listed
from pgqueue_admin.formatting.numbers import times

MOST = 200
_BY_ITSELF = {"succeeded", "died again"}
_WAITS = {
    "ready": "Waits in {place}",
    "in flight": "In flight in {place}: being handled",
    "expired": "Expired in {place}: whoever receives it drops it unread",
    "delayed": "Kept for later, then it goes to {place}",
    "overdue": "Overdue for {place}: nobody has moved it",
}
_PRECISE = 1000  # steps of one kind in the same millisecond are duplicates


@dataclass(frozen=True, slots=True)
class ConversationStep:
    at: datetime | None
    icon: str
    title: str
    source: SightingSource
    place: str = ""
    tone: str = ""
    detail: str = ""
    operation: int | None = None
    gap: str = ""
    link: str = ""


def of(copies: list[MessageCopy], now: datetime) -> list[ConversationStep]:
    """In order, at most MOST; an event that two sources report is listed once, with the first."""
    once: dict[tuple[object, ...], ConversationStep] = {}
    for step in (step for copy in copies for sighting in copy.sightings for step in _of(copy, sighting, now)):
        at = round(step.at.timestamp() * _PRECISE) if step.at else None
        once.setdefault((at, step.icon, step.place), step)
    found = [*_sent(copies), *sorted(once.values(), key=lambda step: _place_in_time(step, now))]
    return _with_gaps(found[:MOST])


def dead_time(copies: Iterable[MessageCopy], now: datetime) -> timedelta:
    """Total time that copies were dead in the archive; until now if still dead."""
    spans = [_dead(each, now) for copy in copies for each in copy.sightings if each.source is SightingSource.ARCHIVE]
    return sum(filter(None, spans), timedelta())


def _dead(sighting: Sighting, now: datetime) -> timedelta | None:
    acts = [act.at for act in sighting.acts if act.at and act.verb not in {"restored", *_BY_ITSELF}]
    until = now if sighting.state in DEAD else min(acts, default=None)
    return positive(sighting.failed_at, until)


def _place_in_time(step: ConversationStep, now: datetime) -> tuple[bool, float]:
    """Steps without a time come before those with one."""
    return step.at is not None, (step.at or now).timestamp()


def _sent(copies: list[MessageCopy]) -> Iterator[ConversationStep]:
    """One step for all copies: they were sent at once."""
    first = next((copy for copy in copies if copy.sent_at or copy.sender), None)
    if first is None:
        return
    source = next(each.source for each in first.sightings if each.sent_at or each.sender)
    places = listed([copy.place for copy in copies if copy.place], 6)
    verb = "Published" if first.is_event else "Sent"
    by, to = (f" by {first.sender}" if first.sender else ""), (f" to {places}" if places else "")
    cause = first.parent.type or first.parent.message_id if first.parent else first.related_to
    why = f"{'edited from' if first.was_edited else 'because of'} {cause}" if cause else ""
    detail = ", ".join(filter(None, (first.sender_host and f"from {first.sender_host}", why, "by its sender’s clock")))
    yield ConversationStep(first.sent_at, "send", f"{verb}{by}{to}", source, detail=detail)


def _of(copy: MessageCopy, seen: Sighting, now: datetime) -> Iterator[ConversationStep]:
    if seen.state in WAITING:
        title = _WAITS[seen.state].format(place=copy.place or "a queue")
        tone = "crit" if seen.state in {"expired", "overdue"} else ""
        at = seen.at if seen.state in {"delayed", "overdue"} else now
        detail = _told(seen.attempts and f"delayed retry {seen.attempts}", seen.where and f"row in {seen.where}")
        yield ConversationStep(at, "clock", title, seen.source, copy.place, tone, detail, link=seen.link)
        return
    if seen.source is SightingSource.CONCLUDED:
        yield from _concluded(copy, seen)
    on = f" on {seen.host}" if seen.host else ""
    if seen.started_at:
        yield ConversationStep(
            seen.started_at, "play", f"Picked up by {copy.place or 'somebody'}{on}", seen.source, copy.place
        )
    if seen.failed_at or seen.state in DEAD:
        yield _failed(copy, seen)
    elif seen.state in {"handled", "succeeded"} and seen.source is not SightingSource.CONCLUDED:
        took = positive(seen.started_at, seen.ended_at)
        detail = _told(
            took is not None and f"it ran {duration(took.total_seconds())}", seen.attempts and _attempt(seen)
        )
        title = f"Handled by {copy.place or 'somebody'}"
        yield ConversationStep(
            seen.ended_at or seen.at, "ok", title, seen.source, copy.place, "good", detail, link=seen.link
        )
    for act in seen.acts:
        yield _act(act, copy)


def _concluded(copy: MessageCopy, seen: Sighting) -> Iterator[ConversationStep]:
    if seen.state == "handled":
        sent = [f"{each.type or 'a message'}" for each in copy.children]
        detail = f"no source has it; {copy.place} sent {listed(sent)} because of it"
        yield ConversationStep(None, "ok", f"Handled by {copy.place}", seen.source, copy.place, detail=detail)
    else:
        yield ConversationStep(
            None, "info", "Seen nowhere", seen.source, copy.place, detail="others name it as their cause"
        )


def _failed(copy: MessageCopy, seen: Sighting) -> ConversationStep:
    where = f": {seen.where}" if seen.where else ""
    title = f"Failed in {copy.place or 'a queue'}{where}"
    if seen.source is SightingSource.ARCHIVE:
        title = f"Dead: archived as {seen.where}"
    detail = _told(seen.cause, seen.attempts and _attempt(seen), seen.host and f"on {seen.host}")
    return ConversationStep(
        seen.failed_at or seen.at, "dead", title, seen.source, copy.place, "crit", detail, link=seen.link
    )


def _attempt(seen: Sighting) -> str:
    return f"on attempt {seen.attempts:,}"


def _act(act: SightingAct, copy: MessageCopy) -> ConversationStep:
    title, icon, tone = archive_events.words(act.verb, act.who)
    source = SightingSource.ARCHIVE if act.verb in _BY_ITSELF else SightingSource.PEOPLE
    detail = _told(act.target and f"into {act.target}", act.reason and f"“{act.reason}”")
    return ConversationStep(act.at, icon, title, source, copy.place, tone, detail, act.operation)


def _told(*facts: object) -> str:
    return ", ".join(str(fact) for fact in facts if fact)


def _with_gaps(found: list[ConversationStep]) -> list[ConversationStep]:
    """``123 ms later``, if both times are known and in order."""
    told = found[:1]
    for before, step in pairwise(found):
        gap = positive(before.at, step.at)
        told.append(replace(step, gap=f"{duration(gap.total_seconds())} later") if gap else step)
    return told


def summary(copies: list[MessageCopy], now: datetime) -> str:
    """``48 min 40 s from sent to its end; 46 min 24 s of it dead``: as far as known."""
    begin = min((each.sent_at for each in copies if each.sent_at), default=None)
    is_open = any(each.is_waiting or each.is_dead for each in copies)
    took = positive(begin, now if is_open else max((each.ends for each in copies if each.ends), default=None))
    dead, deaths = dead_time(copies, now), sum(each.deaths for each in copies)
    so_far = "since it was sent" if is_open else "from sent to its end"
    return "; ".join(filter(None, (
        f"{duration(took.total_seconds())} {so_far}" if took else "",
        f"died {times(deaths)}" if deaths else "",
        f"{duration(dead.total_seconds())} of it dead" if dead else "",
    )))  # fmt: skip

"""Detects clock differences: a message is not received before it was sent, nor sent before its cause."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from pgqueue_admin.formatting.conversations.copy import MessageCopy
from pgqueue_admin.formatting.conversations.sighting import SightingSource
from pgqueue_admin.formatting.durations import duration

NOTABLE = timedelta(milliseconds=2)  # smaller differences are normal
DATABASE = "the database"


@dataclass(frozen=True, slots=True)
class ClockGap:
    """``ahead``: ``host`` is ahead of ``beside`` by at least this. No time is corrected, since it may be more."""

    host: str
    beside: str
    ahead: timedelta

    @property
    def said(self) -> str:
        by = duration(self.ahead.total_seconds())
        return f"{self.host} is at least {by} ahead of {self.beside}; times stand as written, no waits between them"


def gaps(copies: Iterable[MessageCopy], now: datetime) -> list[ClockGap]:
    """The largest per pair of hosts, largest first."""
    found: dict[tuple[str, str], timedelta] = {}
    for ahead, host, beside in (each for copy in copies for each in _of(copy, now)):
        if ahead >= NOTABLE and host != beside:
            found[host, beside] = max(ahead, found.get((host, beside), timedelta()))
    return [ClockGap(*hosts, ahead) for hosts, ahead in sorted(found.items(), key=lambda each: (-each[1], each[0]))]


def _of(copy: MessageCopy, now: datetime) -> Iterable[tuple[timedelta, str, str]]:
    sender = copy.sender_host or copy.sender or "its sender"
    if copy.sent_at:
        yield copy.sent_at - now, sender, DATABASE
        for each in copy.sightings:
            if each.started_at:
                yield copy.sent_at - each.started_at, sender, each.host or copy.place or "its receiver"
            if each.source is SightingSource.ARCHIVE and each.failed_at:
                yield copy.sent_at - each.failed_at, sender, DATABASE
    cause = copy.parent
    if cause and copy.sent_at and cause.sent_at and not copy.was_edited:
        yield cause.sent_at - copy.sent_at, cause.sender_host or cause.sender or "its sender", sender

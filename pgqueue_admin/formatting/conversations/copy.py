"""One copy of a message: the combined sightings of all sources."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from pgqueue_admin.formatting.conversations.sighting import DEAD, OVER, WAITING, Sighting, SightingSource

_NOW_FIRST = (*DEAD, *WAITING)  # present states take precedence over past ones


@dataclass(eq=False)
class MessageCopy:
    """``sightings``: at least one. ``depth``: number of causes above it."""

    message_id: str
    place: str
    sightings: list[Sighting]
    depth: int = 0
    in_circle: bool = False
    parent: "MessageCopy | None" = field(default=None, repr=False)
    children: "list[MessageCopy]" = field(default_factory=list, repr=False)

    @cached_property
    def last(self) -> Sighting:
        """The sighting that determines its state: present ones first, otherwise the latest.

        The handling of a retried message came after the retry, even if its handler's clock disagrees.
        """
        there = [each for each in self.sightings if each.state in _NOW_FIRST]
        if there:
            return min(there, key=lambda each: _NOW_FIRST.index(each.state))
        latest = max(self.sightings, key=_when)
        handled = [each for each in self.sightings if each.state in {"handled", "succeeded"}]
        return max(handled, key=_when) if handled and latest.state == "retried" else latest

    @property
    def state(self) -> str:
        return self.last.state

    @property
    def is_dead(self) -> bool:
        return self.state in DEAD

    @property
    def is_waiting(self) -> bool:
        return self.state in WAITING

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    @property
    def is_concluded(self) -> bool:
        """Whether no source has it: only its effects prove that it existed."""
        return all(each.source is SightingSource.CONCLUDED for each in self.sightings)

    @property
    def also(self) -> list[str]:
        """Other present states: the copy exists more than once."""
        return sorted({each.state for each in self.sightings if each.state in _NOW_FIRST} - {self.state})

    @cached_property
    def type(self) -> str:
        return self._first("type")

    @cached_property
    def sender(self) -> str:
        return self._first("sender")

    @cached_property
    def sender_host(self) -> str:
        return self._first("sender_host")

    @cached_property
    def related_to(self) -> str:
        return self._first("edit_of") or self._first("related_to")

    @property
    def was_edited(self) -> bool:
        return bool(self._first("edit_of"))

    @cached_property
    def is_event(self) -> bool:
        return any(each.is_event for each in self.sightings)

    @cached_property
    def link(self) -> str:
        return self.last.link or self._first("link")

    @property
    def sources(self) -> list[SightingSource]:
        return list(dict.fromkeys(each.source for each in self.sightings))

    @cached_property
    def sent_at(self) -> datetime | None:
        return min((each.sent_at for each in self.sightings if each.sent_at), default=None)

    @cached_property
    def deaths(self) -> int:
        """Number of known deaths: the archive has a row for each."""
        archived = [each for each in self.sightings if each.source is SightingSource.ARCHIVE and each.failed_at]
        return len(archived) or int(any(each.failed_at for each in self.sightings))

    @cached_property
    def handling(self) -> Sighting | None:
        """The latest sighting with handling times."""
        told = [each for each in self.sightings if each.started_at or each.ended_at]
        return max(told, key=_when) if told else None

    @property
    def run(self) -> timedelta | None:
        at = self.handling
        return positive(at.started_at, at.ended_at) if at else None

    def wait(self, now: datetime) -> timedelta | None:
        """Time from sending to receipt, or until now while it waits; None if clocks contradict."""
        if self.is_waiting:
            return positive(self.sent_at, now)
        return positive(self.sent_at, self.handling.started_at) if self.handling and not self.is_dead else None

    @cached_property
    def ends(self) -> datetime | None:
        """Time of its last event, by the clocks of its handlers or of the database."""
        return max((at for each in self.sightings for at in _times(each)), default=None)

    def _first(self, name: str) -> str:
        return next((said for each in self.sightings if (said := getattr(each, name))), "")


def positive(begin: datetime | None, end: datetime | None) -> timedelta | None:
    """None also if the end precedes the beginning: the times come from two clocks."""
    return end - begin if begin and end and end >= begin else None


def _when(sighting: Sighting) -> tuple[bool, float]:
    at = max(_times(sighting), default=None)
    return at is not None, at.timestamp() if at else 0.0


def _times(sighting: Sighting) -> Iterable[datetime]:
    told = (sighting.at, sighting.ended_at, sighting.failed_at, *(act.at for act in sighting.acts))
    return (at for at in told if at)

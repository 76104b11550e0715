"""Why Trends has nothing to show of a window: history was never read, is not read so far, or has nothing there."""

from datetime import datetime, timedelta
from functools import cached_property
from urllib.parse import urlencode

from django.urls import reverse

from pgqueue_admin.console.trends.coverage import Coverage
from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.formatting import times
from pgqueue_admin.formatting.names import listed
from pgqueue_admin.history.freshness import HistoryFreshness
from pgqueue_admin.history.rollups import queries
from pgqueue_admin.history.rollups.queries import NAMES
from pgqueue_admin.models.time_grains import midnight

OFF, NEVER, UNREAD, UNKNOWN, ELSEWHERE, NONE = "off", "never", "unread", "unknown", "elsewhere", "none"
_AROUND = timedelta(days=7)  # shown before the last known day


class EmptyState:
    def __init__(self, reach: Coverage, freshness: HistoryFreshness):
        self._asked, self._reach, self._freshness = reach.window.asked, reach, freshness

    @cached_property
    def why(self) -> str:
        """The first reason that applies."""
        if not self._freshness.begun:
            return NEVER if self._freshness.is_on else OFF
        if self.unknown:
            return UNKNOWN
        if self._reach.is_unread(int(self._asked.since.timestamp())):
            return UNREAD
        return ELSEWHERE if self.last else NONE

    @cached_property
    def chosen(self) -> dict[str, str]:
        return {name: value for name in NAMES if (value := getattr(self._asked, name))}

    @property
    def unknown(self) -> str:
        """The chosen names of which history never had anything, with their kind."""
        return listed([f"{name} “{value}”" for name, value in self._unknown.items()])

    @property
    def is_queue_unknown(self) -> bool:
        """Whether history has no such queue. Only dead messages name their queue: many may have succeeded there."""
        return "queue" in self._unknown

    @cached_property
    def _unknown(self) -> dict[str, str]:
        within = {"queue": self._asked.queue} if visible_queues.current() else {}
        return {name: value for name, value in self.chosen.items() if not queries.last_day({**within, name: value})}

    @cached_property
    def last(self) -> datetime | None:
        """The last day, in UTC, on which anything of this choice finished."""
        return queries.last_day(self.chosen)

    @property
    def last_day(self) -> str:
        """The day by the UTC calendar: west of Greenwich its midnight is in the day before."""
        return f"{self.last:%Y-%m-%d}" if self.last else ""

    @property
    def last_week(self) -> str:
        """The address of the days up to then, for the same choice."""
        assert self.last is not None
        until = midnight(self.last) + timedelta(days=1)
        ends = {"since": times.iso(until - _AROUND), "until": times.iso(until)}
        return f"{reverse('trends')}?{urlencode({**self.chosen, **ends})}"

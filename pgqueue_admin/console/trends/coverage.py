"""How far a window is read: later steps are unknown, and a step that is partly read is known so far."""

from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

from pgqueue_admin.console import components
from pgqueue_admin.console.trends.previous_week import WEEK, WithPreviousWeek
from pgqueue_admin.console.trends.time_range import TimeRange

NOT_READ, SO_FAR, WHOLE = "not read yet", "so far", "whole"
T = TypeVar("T")
_WEEK = int(WEEK.total_seconds())


class Coverage:
    def __init__(self, window: TimeRange, watermark: datetime | None):
        """``watermark``: up to when every table is read; None if one never was: then no step is whole."""
        self.window = window
        self._to = watermark.timestamp() if watermark else None
        self._step = int(window.step.total_seconds())

    def knows(self, at: int) -> bool:
        """Whether nothing found in this step means that nothing finished in it, so far at least."""
        return self._to is not None and at < self._to

    def is_whole(self, at: int, until: int | None = None) -> bool:
        """``until``: where it ends, if that is not one step later."""
        return self._to is not None and (until or at + self._step) <= self._to

    def is_unread(self, at: int) -> bool:
        """Whether the step's figures are left out: not every table is read, and partial figures would look whole."""
        return self._to is not None and at >= self._to

    def known(self, at: int, until: int | None = None) -> str:
        """The coverage in words, for tables, files and the legend."""
        return NOT_READ if self.is_unread(at) else WHOLE if self.is_whole(at, until) else SO_FAR

    def only(self, found: WithPreviousWeek[T]) -> WithPreviousWeek[T]:
        """The steps that may be shown; of the week before only whole ones, for comparison."""
        return WithPreviousWeek(
            {at: each for at, each in found.now.items() if not self.is_unread(at)},
            {at: each for at, each in found.before.items() if self.is_whole(at - _WEEK)},
        )

    @cached_property
    def unread(self) -> list[datetime]:
        """Steps without figures, the oldest first."""
        return [datetime.fromtimestamp(at, UTC) for at in self.window.instants if self.is_unread(at)]

    @property
    def unread_from(self) -> datetime | None:
        return next(iter(self.unread), None)

    @property
    def so_far(self) -> int | None:
        """The first step that is not whole."""
        return next((at for at in self.window.instants if not self.is_whole(at)), None)

    @property
    def sentence(self) -> str:
        if begin := self.unread_from:
            return f"From {components.sentence_time(begin)} on not every table is read yet: left blank."
        if self._to is None:
            return "A table is being read for the first time: every figure is what is known so far."
        return ""

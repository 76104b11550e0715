"""A window and the same one a week earlier, both keyed by this week's times."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Generic, NamedTuple, TypeVar

from pgqueue_admin.console.trends.time_range import TimeRange
from pgqueue_admin.history.rollups.queries import TrendQuery

WEEK = timedelta(days=7)
_SHIFT = int(WEEK.total_seconds())
T = TypeVar("T")


class WithPreviousWeek(NamedTuple, Generic[T]):
    now: dict[int, T]
    before: dict[int, T]


def both(window: TimeRange, ask: Callable[[TrendQuery], dict[int, T]]) -> WithPreviousWeek[T]:
    """Results of ``ask`` by step; it is called once if the two windows touch."""
    now, before = window.asked, window.before(WEEK)
    if before.until < now.since:
        return WithPreviousWeek(ask(now), _later(ask(before)))
    found, begin, end = ask(replace(now, since=before.since)), now.since.timestamp(), before.until.timestamp()
    earlier = {at: each for at, each in found.items() if at < end}
    return WithPreviousWeek({at: each for at, each in found.items() if at >= begin}, _later(earlier))


def _later(found: dict[int, T]) -> dict[int, T]:
    return {at + _SHIFT: each for at, each in found.items()}

"""A window and the same one a week earlier, told by this week's instants."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Generic, NamedTuple, TypeVar

from pgqueue_admin.console.trends.window import Window
from pgqueue_admin.pipeline.figures.trends import Asked

WEEK = timedelta(days=7)
_SHIFT = int(WEEK.total_seconds())
T = TypeVar("T")


class Both(NamedTuple, Generic[T]):
    now: dict[int, T]
    before: dict[int, T]


def both(window: Window, ask: Callable[[Asked], dict[int, T]]) -> Both[T]:
    """What ``ask`` finds by step; asked once where the two windows touch."""
    now, before = window.asked, window.before(WEEK)
    if before.until < now.since:
        return Both(ask(now), _later(ask(before)))
    found, begin, end = ask(replace(now, since=before.since)), now.since.timestamp(), before.until.timestamp()
    earlier = {at: each for at, each in found.items() if at < end}
    return Both({at: each for at, each in found.items() if at >= begin}, _later(earlier))


def _later(found: dict[int, T]) -> dict[int, T]:
    return {at + _SHIFT: each for at, each in found.items()}

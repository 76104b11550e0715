"""Time grains of rollups: minutes, hours and days in UTC."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

STEPS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}


def floor(at: datetime, grain: str) -> datetime:
    """The start of the step that contains ``at``."""
    seconds = int(STEPS[grain].total_seconds())
    return datetime.fromtimestamp(int(at.timestamp()) // seconds * seconds, UTC)


def few(grain: str, since: datetime, until: datetime) -> Iterator[tuple[str, datetime, datetime]]:
    """Split a range of whole steps into as few as possible: coarser ones, with finer ones before and after."""
    coarser = dict(zip(STEPS, list(STEPS)[1:], strict=False)).get(grain)
    if coarser:
        first = floor(since + STEPS[coarser] - timedelta(microseconds=1), coarser)
        last = floor(until, coarser)
        if first < last:
            yield grain, since, first
            yield from few(coarser, first, last)
            yield grain, last, until
            return
    yield grain, since, until


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)

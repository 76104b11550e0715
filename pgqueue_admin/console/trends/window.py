"""Which stretch of time is asked for, and in what steps: the steps follow the length."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.http import QueryDict
from django.utils.dateparse import parse_datetime

from pgqueue_admin.pipeline.trends import STEPS, Asked

LENGTHS = {
    "1h": (timedelta(hours=1), "minute"),
    "6h": (timedelta(hours=6), "minute"),
    "24h": (timedelta(hours=24), "hour"),
    "7d": (timedelta(days=7), "hour"),
    "30d": (timedelta(days=30), "hour"),
    "90d": (timedelta(days=90), "day"),
    "2y": (timedelta(days=730), "day"),
}
WORDS = {"1h": "1 h", "6h": "6 h", "24h": "24 h", "7d": "7 d", "30d": "30 d", "90d": "90 d", "2y": "2 y"}
USUAL = "7d"
_YEARS = (1980, 2200)  # outside, arithmetic with times ends before the page does


@dataclass(frozen=True, slots=True)
class Window:
    name: str
    asked: Asked
    is_past: bool  # an end was asked for, rather than now

    @property
    def step(self) -> timedelta:
        return STEPS[self.asked.grain]

    @property
    def instants(self) -> list[int]:
        """The beginning of every step, in Unix seconds."""
        step = int(self.step.total_seconds())
        return list(range(int(self.asked.since.timestamp()), int(self.asked.until.timestamp()), step))

    def before(self, by: timedelta) -> Asked:
        """The same window, so much earlier."""
        asked = self.asked
        return Asked(asked.since - by, asked.until - by, asked.grain, asked.queue, asked.endpoint, asked.type)


def read(query: QueryDict, now: datetime) -> Window:
    """From ``w`` (a length), ``at`` (an end) and the names; what is not understood falls back to the usual."""
    name = query.get("w", "")
    name = name if name in LENGTHS else USUAL
    length, grain = LENGTHS[name]
    at = _instant(query.get("at", ""))
    step = STEPS[grain]
    until = _floor(at or now, step) + step
    names = {each: query.get(each, "").replace("\0", "") for each in ("queue", "endpoint", "type")}
    return Window(name, Asked(until - length, until, grain, **names), at is not None)


def _instant(text: str) -> datetime | None:
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    if found is None or not _YEARS[0] < found.year < _YEARS[1]:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _floor(at: datetime, step: timedelta) -> datetime:
    seconds = int(step.total_seconds())
    return datetime.fromtimestamp(int(at.timestamp()) // seconds * seconds, UTC)

"""The time range that is requested, and its steps, which follow from its length."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from django.http import QueryDict
from django.utils.dateparse import parse_datetime

from pgqueue_admin.history.rollups.queries import TrendQuery
from pgqueue_admin.history.rollups.retention import finest
from pgqueue_admin.models.time_grains import STEPS, floor

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
STEPS_AT_MOST = 750  # of a custom range: the finest grain within this number
_YEARS = (1980, 2200)  # outside, arithmetic with times overflows


@dataclass(frozen=True, slots=True)
class TimeRange:
    name: str  # of LENGTHS; empty for a custom range
    asked: TrendQuery
    is_past: bool  # with an end of its own, rather than now
    typed: tuple[str, str] = ("", "")  # its beginning and end, as the address has them
    faults: list[str] = field(default_factory=list)
    forgotten: str = ""  # the grain that it would have, were that still kept

    @property
    def file_name(self) -> str:
        return self.name or f"{self.asked.since:%Y%m%dT%H%M}-{self.asked.until:%Y%m%dT%H%M}"

    @property
    def step(self) -> timedelta:
        return STEPS[self.asked.grain]

    @property
    def instants(self) -> list[int]:
        """The beginning of every step, in Unix seconds."""
        step = int(self.step.total_seconds())
        return list(range(int(self.asked.since.timestamp()), int(self.asked.until.timestamp()), step))

    def before(self, by: timedelta) -> TrendQuery:
        """The same window, earlier by ``by``."""
        return replace(self.asked, since=self.asked.since - by, until=self.asked.until - by)


def read(query: QueryDict, now: datetime) -> TimeRange:
    """Parse ``since`` and ``until`` (now, if empty), or ``w`` (a length) and ``at`` (an end), and the names.

    Invalid values fall back to the default; an invalid beginning or end is also reported.
    """
    names = {each: query.get(each, "").replace("\0", "") for each in ("queue", "endpoint", "type")}
    typed = (query.get("since", "").strip(), query.get("until", "").strip())
    faults = [f"“{text}” is not a time. Try 2026-11-14 09:30, in UTC." for text in typed if text and not instant(text)]
    since, until = map(instant, typed)
    if since and not faults:
        if since < (until or now):
            return _stretch(since, until or now, bool(until), typed, names)
        faults.append("The stretch ends before it begins.")
    elif until and not faults:
        faults.append("Give a start time as well as an end time.")
    return _length(query, now, typed, names, faults)


def as_kept(window: TimeRange) -> TimeRange:
    """The same range, in whole steps of the finest grain that is still kept."""
    asked = window.asked
    grain = finest(asked.grain, asked.since, asked.until)
    if grain == asked.grain:
        return window
    step = STEPS[grain]
    since, until = floor(asked.since, grain), floor(asked.until + step - timedelta(microseconds=1), grain)
    return replace(window, asked=replace(asked, since=since, until=until, grain=grain), forgotten=asked.grain)


def _stretch(
    since: datetime, until: datetime, is_past: bool, typed: tuple[str, str], names: dict[str, str]
) -> TimeRange:
    """Whole steps of the finest grain that gives few enough; only the newest if even days are too many."""
    grain = next((each for each, step in STEPS.items() if (until - since) / step <= STEPS_AT_MOST), "day")
    step = STEPS[grain]
    end = floor(until + step - timedelta(microseconds=1), grain)
    begin = max(floor(since, grain), end - STEPS_AT_MOST * step)
    faults = [f"Only the last {STEPS_AT_MOST} days of it are shown."] if begin > since else []
    return TimeRange("", TrendQuery(begin, end, grain, **names), is_past, typed, faults)


def _length(
    query: QueryDict, now: datetime, typed: tuple[str, str], names: dict[str, str], faults: list[str]
) -> TimeRange:
    name = query.get("w", "")
    name = name if name in LENGTHS else USUAL
    length, grain = LENGTHS[name]
    at = instant(query.get("at", ""))
    until = floor(at or now, grain) + STEPS[grain]
    return TimeRange(name, TrendQuery(until - length, until, grain, **names), at is not None, typed, faults)


def instant(text: str) -> datetime | None:
    """A time of an address, in UTC unless it has a zone; None if invalid."""
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    if found is None or not _YEARS[0] < found.year < _YEARS[1]:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)

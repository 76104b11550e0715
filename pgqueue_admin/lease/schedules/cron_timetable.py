"""Due times of a schedule: a cron expression of five fields, or a date, in a time zone."""

import re
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, Protocol

from cronsim import CronSim, CronSimError

from pgqueue_admin.dialects.schedule_store import DueTime
from pgqueue_admin.formatting import times
from pgqueue_admin.lease.errors import ScheduleRefused

MOST_LETTERS = 200
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)", re.ASCII)
_LIKE_A_DATE = re.compile(r"\d{4}-\d|\d+[./]\d+[./]\d+", re.ASCII)
_ORDINAL = re.compile(r"\b(\d*[^1\D])?([123])th\b", re.ASCII)
_UNREADABLE = (
    CronSimError,
    ValueError,
    AssertionError,
)  # the last: a step of a list, which the library takes for granted


class CronField(NamedTuple):
    name: str
    allows: str


FIELDS = (
    CronField("minute", "0 to 59, such as 30, 0,30, 10-20 or */15"),
    CronField("hour", "0 to 23, such as 2, 8-17 or */6"),
    CronField("day", "1 to 31, or L for the last"),
    CronField("month", "1 to 12, or JAN to DEC"),
    CronField("weekday", "0 or 7 is Sunday, 1 to 6 Monday to Saturday, or SUN to SAT"),
)


class Timetable(Protocol):
    expression: str
    zone: str

    @property
    def is_fixed(self) -> bool:
        """Whether it names times of day; otherwise it runs by elapsed time, regardless of clock changes."""

    def words(self) -> str:
        """In plain words, without the zone."""

    def times(self, after: datetime) -> Iterator[DueTime]:
        """Due times after that, soonest first, without duplicates."""

    def wall_times(self, since: datetime, until: datetime) -> Iterator[datetime]:
        """Matching local times between two local times, whether they are skipped or occur twice."""


class CronTimetable:
    """As Debian's cron: a skipped time runs right after the clock change; a time that occurs twice runs once."""

    def __init__(self, expression: str, zone: str):
        self.expression, self.zone = expression, zone
        self._tz = tz_of(zone)

    @property
    def is_fixed(self) -> bool:
        minute, hour = self.expression.split()[:2]
        return not minute.startswith("*") and not hour.startswith("*")

    def words(self) -> str:
        said = CronSim(self.expression, datetime.now(UTC)).explain()
        return _ORDINAL.sub(lambda found: f"{found[1] or ''}{found[2]}{('st', 'nd', 'rd')[int(found[2]) - 1]}", said)

    def times(self, after: datetime) -> Iterator[DueTime]:
        seen = after
        for local in CronSim(self.expression, after.astimezone(self._tz)):
            at = local.astimezone(UTC)
            if at > seen:  # skipped times share one instant; the repeated hour lies before ``seen``
                seen = at
                yield DueTime(at, local.replace(tzinfo=None))

    def wall_times(self, since: datetime, until: datetime) -> Iterator[datetime]:
        for found in CronSim(self.expression, since - timedelta(seconds=1)):
            if found >= until:
                return
            yield found


class DateTimetable:
    """A single due time."""

    is_fixed = True

    def __init__(self, expression: str, zone: str):
        self.expression, self.zone = expression, zone
        self._wall = datetime.fromisoformat(expression)
        local = self._wall.replace(tzinfo=tz_of(zone))
        at = local.astimezone(UTC)
        self._due = DueTime(at, at.astimezone(local.tzinfo).replace(tzinfo=None))
        if self._due.local != self._wall:  # the clock skips it
            self._due = _after_the_leap(self._wall, local.tzinfo)

    def words(self) -> str:
        return f"Once, {times.day(self._wall)} at {self._wall:%H:%M}"

    def times(self, after: datetime) -> Iterator[DueTime]:
        if self._due.at > after:
            yield self._due

    def wall_times(self, since: datetime, until: datetime) -> Iterator[datetime]:
        if since <= self._wall < until:
            yield self._wall


def read(expression: str, zone: str) -> Timetable:
    """Raises ScheduleRefused."""
    text, zone = " ".join(expression.split()), zone.strip()
    tz_of(zone)
    if len(text) > MOST_LETTERS:
        raise ScheduleRefused(
            "expression", f"The expression has {len(text)} letters, and at most {MOST_LETTERS} are read."
        )
    if date := _DATE.fullmatch(text):
        return _read_date(f"{date[1]} {date[2]}", zone)
    parts = text.upper().split()
    if len(parts) != len(FIELDS):
        raise ScheduleRefused("expression", _not_five(text, len(parts)))
    for place, part in enumerate(parts):
        _check_field(place, part)
    made = CronTimetable(" ".join(parts), zone)
    try:
        fires = next(made.times(datetime.now(UTC)), None)
    except _UNREADABLE:
        fires = None
    if fires is None:
        raise ScheduleRefused("expression", f"{made.expression} never comes: no day of the calendar fits it.")
    return made


def read_to_come(expression: str, zone: str, now: datetime) -> Timetable:
    """As ``read``; a timetable without future due times is refused, too."""
    found = read(expression, zone)
    if next(found.times(now), None) is None:
        raise ScheduleRefused("expression", f"{found.expression} in {zone} is over: it would never be sent.")
    return found


def next_times(timetable: Timetable, after: datetime, most: int = 5) -> list[DueTime]:
    return list(islice(timetable.times(after), most))


@lru_cache(maxsize=256)
def tz_of(zone: str) -> tzinfo:
    """Raises ScheduleRefused."""
    if zone == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(zone)
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        said = f"{zone or 'Nothing'} is no time zone that is known here. Write it as Europe/Vienna, or UTC."
        raise ScheduleRefused("zone", said) from None


def _read_date(text: str, zone: str) -> DateTimetable:
    try:
        return DateTimetable(text, zone)
    except (ValueError, OverflowError):
        raise ScheduleRefused("expression", f"{text} is no date of the calendar.") from None


def _not_five(text: str, parts: int) -> str:
    if _LIKE_A_DATE.match(text):
        return f"{text} cannot be read as a date: write it as 2026-11-28 06:00."
    have = "Nothing is written." if not text else f"{text} has {parts} field{'s' * (parts != 1)}."
    return f"{have} A cron expression has five: minute, hour, day, month, weekday. Or write a date as 2026-11-28 06:00."


def _check_field(place: int, part: str) -> None:
    """Each field alone, so that the error names the wrong one."""
    alone = ["*"] * len(FIELDS)
    alone[place] = part
    try:
        CronSim(" ".join(alone), datetime(2000, 1, 1, tzinfo=UTC))
    except _UNREADABLE:
        name, allows = FIELDS[place]
        raise ScheduleRefused("expression", f"{name} {part} cannot be read. Allowed: {allows}.", place) from None


def _after_the_leap(wall: datetime, tz: tzinfo | None) -> DueTime:
    for minutes in range(1, 24 * 60 + 1):
        local = wall + timedelta(minutes=minutes)
        at = local.replace(tzinfo=tz).astimezone(UTC)
        if at.astimezone(tz).replace(tzinfo=None) == local:
            return DueTime(at, local)
    raise ScheduleRefused("expression", f"{wall:%Y-%m-%d %H:%M} is left out by that zone.")

"""Effects of summer time on a schedule: times that do not exist, and times that occur twice."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from pgqueue_admin.formatting.times import day
from pgqueue_admin.lease.schedules.cron_timetable import Timetable, tz_of

AHEAD = timedelta(days=400)


class ClockChange(NamedTuple):
    """Local times between ``since`` and ``until`` are skipped, or occur twice."""

    since: datetime
    until: datetime
    comes_twice: bool


def sentences(timetable: Timetable, after: datetime) -> list[str]:
    """The next change of each kind that affects the timetable, within 400 days."""
    said: dict[bool, str] = {}
    for change in clock_changes(tz_of(timetable.zone), after, after + AHEAD):
        named = next(timetable.wall_times(change.since, change.until), None)
        if named is not None and change.comes_twice not in said:
            said[change.comes_twice] = _sentence(change, named, timetable.is_fixed)
    return list(said.values())


def clock_changes(zone: tzinfo, since: datetime, until: datetime) -> Iterator[ClockChange]:
    """Compare the zone's offset day by day, then find the minute of each change."""
    at = since.astimezone(UTC).replace(second=0, microsecond=0)
    while at < until:
        following = at + timedelta(days=1)
        if (before := _offset(at, zone)) != (after := _offset(following, zone)):
            changed = _minute_of_change(at, following, zone).replace(tzinfo=None)
            first, last = sorted((changed + before, changed + after))
            yield ClockChange(first, last, after < before)
        at = following


def _minute_of_change(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    while after - before > timedelta(minutes=1):
        between = before + timedelta(minutes=(after - before) // timedelta(minutes=2))
        before, after = (between, after) if _offset(between, zone) == _offset(before, zone) else (before, between)
    return after


def _offset(at: datetime, zone: tzinfo) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta()


def _sentence(change: ClockChange, named: datetime, is_fixed: bool) -> str:
    when = f"{named:%H:%M}"
    if is_fixed:
        if change.comes_twice:
            return f"On {day(change.since)} {when} comes twice: it runs once, the first time."
        return f"On {day(change.since)} {when} does not exist: it runs at {change.until:%H:%M}."
    stretch = f"{change.since:%H:%M} to {change.until:%H:%M}"
    if change.comes_twice:
        return f"On {day(change.since)} the time from {stretch} comes twice: it runs in both."
    return f"On {day(change.since)} there is no time from {stretch}: no run falls into it."

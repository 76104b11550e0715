"""A time range in Trends: whole steps, a grain that follows its length, and faults that are reported."""

from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict

from pgqueue_admin.console.trends import time_range
from tests.console.sampled import signed_in

NOW = datetime(2026, 11, 14, 10, 30, 20, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def read(**asked: str) -> time_range.TimeRange:
    query = QueryDict(mutable=True)
    query.update(asked)
    return time_range.read(query, NOW)


@pytest.mark.parametrize(
    ("since", "until", "grain", "begin", "length"),
    [
        ("2026-11-14T09:41:00Z", "2026-11-14T09:42:00Z", "minute", "09:41", timedelta(minutes=1)),
        ("2026-11-14 10:41 +0100", "2026-11-14T18:42+09:00", "minute", "09:41", timedelta(minutes=1)),
        ("2026-11-14 09:41:30", "2026-11-14 10:00:01", "minute", "09:41", timedelta(minutes=20)),
        ("2026-11-14 00:00", "", "minute", "00:00", timedelta(minutes=631)),
        ("2026-11-13 00:10", "2026-11-13 20:00", "hour", "00:00", 20 * HOUR),
        ("2026-10-01", "2026-11-14", "day", "00:00", 44 * DAY),
    ],
)
def test_a_stretch_is_whole_steps_of_a_grain_that_follows_its_length(
    since: str, until: str, grain: str, begin: str, length: timedelta
) -> None:
    found = read(since=since, until=until, queue="q")
    asked = found.asked
    assert (asked.grain, f"{asked.since:%H:%M}", asked.until - asked.since) == (grain, begin, length)
    assert (found.name, found.faults, asked.queue, found.is_past) == ("", [], "q", bool(until))


def test_the_form_says_in_which_zone_it_takes_times(console_database: str) -> None:
    client = signed_in()
    client.cookies["zone"] = "Asia/Tokyo"
    said = " ".join(client.get("/trends/").content.decode().split())
    assert "UTC, or JST with +0900 behind it" in said
    client.cookies["utc"] = "on"
    assert "+0000 behind it" not in client.get("/trends/").content.decode()


def test_a_stretch_of_many_years_is_cut_to_the_newest_days() -> None:
    found = read(since="1999-01-01", until="2026-11-14")
    assert len(found.instants) == time_range.STEPS_AT_MOST
    assert found.asked.until == datetime(2026, 11, 14, tzinfo=UTC)
    assert found.faults == ["Only the last 750 days of it are shown."]


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ({"since": "yesterday"}, "“yesterday” is not a time"),
        ({"since": "2026-11-14", "until": "<b>"}, "“<b>” is not a time"),
        ({"since": "2026-11-14", "until": "2026-11-13"}, "ends before it begins"),
        ({"since": "2026-12-01"}, "ends before it begins"),
        ({"until": "2026-11-14"}, "Give a start time as well as an end time"),
    ],
)
def test_invalid_range_is_reported_and_the_default_window_shown(asked: dict[str, str], fault: str) -> None:
    found = read(w="24h", **asked)
    assert (found.name, found.asked.until - found.asked.since) == ("24h", DAY)
    (said,) = found.faults
    assert fault in said


def test_a_stretch_leaves_the_length_alone_that_a_press_returns_to() -> None:
    assert read(w="1h", since="2026-11-14 09:00").asked.grain == "minute"
    assert read(w="1h").name == "1h"

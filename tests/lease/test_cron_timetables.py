"""When a schedule is due: zones, summer time, and the refusal of invalid expressions and of those never due."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.lease.errors import ScheduleRefused
from pgqueue_admin.lease.schedules import clock_changes, cron_timetable

WINTER, SUMMER = datetime(2027, 3, 27, 12, tzinfo=UTC), datetime(2027, 10, 30, 12, tzinfo=UTC)
VIENNA = "Europe/Vienna"


def local(expression: str, after: datetime, most: int = 3, zone: str = VIENNA) -> list[str]:
    found = cron_timetable.next_times(cron_timetable.read(expression, zone), after, most)
    return [f"{each.local:%d %H:%M} {each.at:%H:%M}" for each in found]


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("30 2 * * *", WINTER, ["28 03:00 01:00", "29 02:30 00:30"]),  # skipped by the clock
        ("0 2,3 * * *", WINTER, ["28 03:00 01:00", "29 02:00 00:00"]),  # both are the same instant: run once
        ("30 2 * * *", SUMMER, ["31 02:30 00:30", "01 02:30 01:30"]),  # twice on the clock: run once
        (
            "0 * * * *",
            SUMMER + timedelta(hours=11, minutes=30),
            ["31 02:00 00:00", "31 02:00 01:00"],
        ),  # by elapsed time
        ("2027-03-28 02:30", WINTER, ["28 03:00 01:00"]),
        ("2027-10-31 02:30", SUMMER, ["31 02:30 00:30"]),
        ("2027-10-31T06:00", SUMMER, ["31 06:00 05:00"]),
    ],
)
def test_summer_time(expression: str, after: datetime, expected: list[str]) -> None:
    assert local(expression, after, 2) == expected


def test_clock_changes_are_described() -> None:
    said = {
        each: clock_changes.sentences(cron_timetable.read(each, VIENNA), WINTER)
        for each in ("30 2 * * *", "30 * * * *")
    }
    assert said["30 2 * * *"] == [
        "On Sun 28 Mar 2027 02:30 does not exist: it runs at 03:00.",
        "On Sun 31 Oct 2027 02:30 comes twice: it runs once, the first time.",
    ]
    assert said["30 * * * *"] == [
        "On Sun 28 Mar 2027 there is no time from 02:00 to 03:00: no run falls into it.",
        "On Sun 31 Oct 2027 the time from 02:00 to 03:00 comes twice: it runs in both.",
    ]
    assert clock_changes.sentences(cron_timetable.read("30 9 * * *", VIENNA), WINTER) == []
    assert clock_changes.sentences(cron_timetable.read("30 2 * * *", "UTC"), WINTER) == []


def test_half_an_hour_of_summer_time() -> None:
    said = clock_changes.sentences(cron_timetable.read("45 1 * * *", "Australia/Lord_Howe"), WINTER)
    assert said == ["On Sun 4 Apr 2027 01:45 comes twice: it runs once, the first time."]


@pytest.mark.parametrize(
    ("expression", "zone", "field", "part", "said"),
    [
        ("30 2 * * 1-9", "UTC", "expression", 4, "weekday 1-9 cannot be read. Allowed: 0 or 7 is Sunday"),
        ("60 2 * * *", "UTC", "expression", 0, "minute 60 cannot be read"),
        ("0 2 * *", "UTC", "expression", None, "has 4 fields. A cron expression has five"),
        ("0 0 2 * * *", "UTC", "expression", None, "has 6 fields"),
        ("", "UTC", "expression", None, "Nothing is written"),
        ("0 0 30 2 *", "UTC", "expression", None, "never comes"),
        ("0 0 31 4,6,9,11 *", "UTC", "expression", None, "never comes"),
        ("28.11.2026 06:00", "UTC", "expression", None, "write it as 2026-11-28 06:00"),
        ("2026-02-30 06:00", "UTC", "expression", None, "no date of the calendar"),
        ("30 2 * * *", "Europe/Wien", "zone", None, "no time zone that is known"),
        ("30 2 * * *", "../../etc/passwd", "zone", None, "no time zone that is known"),
        ("30 2 * * *", "", "zone", None, "no time zone that is known"),
        ("1," * 200 + "1 * * * *", "UTC", "expression", None, "at most 200 are read"),
    ],
)
def test_refused(expression: str, zone: str, field: str, part: int | None, said: str) -> None:
    with pytest.raises(ScheduleRefused, match=said) as refused:
        cron_timetable.read(expression, zone)
    assert (refused.value.field, refused.value.part) == (field, part)


def test_a_date_that_is_over_is_refused_where_it_is_saved() -> None:
    cron_timetable.read("2027-03-27 11:00", "UTC")
    with pytest.raises(ScheduleRefused, match="is over: it would never be sent"):
        cron_timetable.read_to_come("2027-03-27 11:00", "UTC", WINTER)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("30 2 * * *", "At 02:30 every day"),
        ("0 7 * * mon", "At 07:00 on Monday"),
        ("0 0 22 * *", "At 00:00 on the 22nd day of every month"),
        ("0 0 L * *", "At 00:00 on the last day of every month"),
        ("2026-11-28 06:00", "Once, Sat 28 Nov 2026 at 06:00"),
    ],
)
def test_words(expression: str, said: str) -> None:
    assert cron_timetable.read(expression, "UTC").words() == said


FIELD = st.text("0123456789*,-/L#ADEJMNORSTU ?", min_size=1, max_size=6)


@given(st.lists(FIELD, min_size=5, max_size=5).map(" ".join) | st.text(max_size=30), st.sampled_from([VIENNA, "UTC"]))
def test_any_expression_is_read_or_refused(expression: str, zone: str) -> None:
    try:
        found = cron_timetable.read(expression, zone)
    except ScheduleRefused:
        return
    due = cron_timetable.next_times(found, WINTER)
    assert [each.at for each in due] == sorted({each.at for each in due})
    assert found.words()
    clock_changes.sentences(found, WINTER)

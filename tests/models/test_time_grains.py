"""Time spans are split into the fewest whole steps."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.models.time_grains import STEPS, few, floor

MONDAY = datetime(2026, 10, 19, tzinfo=UTC)
HOUR, MINUTE = STEPS["hour"], STEPS["minute"]


@given(st.sampled_from(list(STEPS)), st.integers(0, 10_000), st.integers(1, 10_000))
def test_parts_cover_the_span_in_whole_steps(grain: str, first: int, steps: int) -> None:
    since = floor(MONDAY + first * STEPS[grain], grain)
    parts = list(few(grain, since, since + steps * STEPS[grain]))
    ends = [since, *(until for _, _, until in parts)]
    assert [begin for _, begin, _ in parts] == ends[:-1]
    assert ends[-1] == since + steps * STEPS[grain]
    assert all(floor(at, each) == at for each, begin, until in parts for at in (begin, until))


@pytest.mark.parametrize(
    ("grain", "since", "until", "steps"),
    [
        ("hour", MONDAY + 22 * HOUR, MONDAY + (7 * 24 + 22) * HOUR, {"hour": 2 + 22, "day": 6}),
        ("hour", MONDAY, MONDAY + 48 * HOUR, {"day": 2}),
        ("hour", MONDAY + HOUR, MONDAY + 24 * HOUR, {"hour": 23}),
        ("minute", MONDAY + 23.5 * HOUR, MONDAY + 49.25 * HOUR, {"minute": 30 + 15, "day": 1, "hour": 1}),
        ("day", MONDAY, MONDAY + 48 * HOUR, {"day": 2}),
    ],
)
def test_span_is_cut_into_the_fewest_steps(grain: str, since: datetime, until: datetime, steps: dict[str, int]) -> None:
    found: dict[str, int] = {}
    for each, begin, end in few(grain, since, until):
        found[each] = found.get(each, 0) + int((end - begin) / STEPS[each])
    assert {each: number for each, number in found.items() if number} == steps


def test_single_part_and_empty_span_stay_as_they_are() -> None:
    assert list(few("hour", MONDAY, MONDAY)) == [("hour", MONDAY, MONDAY)]
    assert list(few("minute", MONDAY + MINUTE, MONDAY + 2 * MINUTE)) == [
        ("minute", MONDAY + MINUTE, MONDAY + timedelta(minutes=2))
    ]

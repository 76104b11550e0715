"""The band, and what lies beyond it: from figures written out."""

import pytest

from pgqueue_admin.pipeline.figures import usual
from pgqueue_admin.pipeline.figures.usual import Band, Usual, Usuals
from pgqueue_admin.pipeline.judging import unusual
from pgqueue_admin.pipeline.judging.unusual import Seen

SPANS = Usual(90, 100, 110, 8)
NEVER, ALWAYS = Usual(0, 0, 0, 8), Usual(1, 1, 1, 8)
BUSY = Usual(180, 200, 220, 8)


def known(**changes: Usual | None) -> Usuals:
    return Usuals(BUSY, NEVER, NEVER, SPANS, SPANS, SPANS)._replace(**changes)


def kinds(seen: Seen, **changes: Usual | None) -> list[str]:
    return [found.kind for found in unusual.of_messages(seen, known(**changes))]


def test_a_band_is_three_times_as_wide_as_the_quartiles_are_apart_and_at_least_half_of_the_median() -> None:
    assert Usual(90, 100, 130, 8).band(0) == Band(0, 250)
    assert Usual(98, 100, 102, 8).band(0) == Band(50, 150)
    assert Usual(9, 10, 11, 3).band(20) == Band(0, 30)


def test_no_share_is_more_than_all() -> None:
    assert usual.of_share(Usual(0.4, 0.5, 0.6, 8), 4) == Band(0, 1)
    assert usual.of_share(ALWAYS, 10_000) == Band(0.5, 1)


def test_slower_is_beyond_the_band_and_not_only_late() -> None:
    assert kinds(Seen(200, 0, 171, 171)) == ["slower"]
    assert kinds(Seen(200, 0, 170, 170)) == []
    assert kinds(Seen(200, 0, 900, 900), nearly_all=None) == [], "too few weeks"


def test_one_or_two_slow_messages_are_chance() -> None:
    assert kinds(Seen(9, 0, p95=9_000, fifth=100)) == []
    assert kinds(Seen(4, 0, p95=9_000, fifth=None)) == []
    assert kinds(Seen(5, 0, p95=9_000, fifth=8_000)) == ["slower"]


@pytest.mark.parametrize(
    ("messages", "failed", "is_unusual"),
    [(5, 4, False), (5, 5, True), (200, 4, False), (200, 5, True), (100_000, 4, False)],
)
def test_where_nothing_fails_as_a_rule_five_must(messages: int, failed: int, is_unusual: bool) -> None:
    assert (kinds(Seen(messages, failed)) == ["failures"]) == is_unusual


def test_where_twice_as_many_come_twice_as_many_may_fail() -> None:
    fails = {"failures": Usual(9, 10, 11, 8), "failed": Usual(0.045, 0.05, 0.055, 8)}
    assert kinds(Seen(1_000, 50), **fails) == []
    assert kinds(Seen(200, 50), **fails) == ["failures"]


def test_where_only_failures_are_read_their_number_tells_and_none_is_no_silence() -> None:
    fails = {"messages": BUSY, "failures": BUSY, "failed": ALWAYS}
    assert kinds(Seen(900, 900), **fails) == ["failures"]
    assert kinds(Seen(250, 250), **fails) == []
    assert kinds(Seen(), **fails) == []


def test_where_only_failures_were_read_of_late_they_are_judged_by_their_share() -> None:
    """A quarter of the weeks had successes: that there are none now is silence, and that all fail is as usual."""
    late = {"messages": BUSY, "failures": BUSY, "failed": Usual(0.5, 1, 1, 8)}
    assert kinds(Seen(900, 900), **late) == []
    assert kinds(Seen(), **late) == ["silence"]


def test_as_many_failures_as_the_band_holds_are_in_it() -> None:
    assert kinds(Seen(4, 4), failed=None) == []
    assert kinds(Seen(5, 5), failed=None) == ["failures"]


@pytest.mark.parametrize(
    ("messages", "is_silent"),
    [(BUSY, True), (Usual(0, 200, 210, 8), False), (Usual(10, 12, 14, 8), False), (NEVER, False), (None, False)],
    ids=["busy", "quiet in a quarter of the weeks", "so few that none is chance", "never busy", "too few weeks"],
)
def test_silence_is_nothing_where_there_always_is_something(messages: Usual | None, is_silent: bool) -> None:
    assert (kinds(Seen(), messages=messages) == ["silence"]) == is_silent


def test_growth_is_at_least_twenty_more() -> None:
    assert [found.kind for found in unusual.of_depth(21, NEVER)] == ["growth"]
    assert list(unusual.of_depth(20, NEVER)) == []
    assert list(unusual.of_depth(900, None)) == []


def test_of_few_messages_the_share_may_be_larger() -> None:
    assert usual.of_share(NEVER, 5).high == pytest.approx(0.8)
    assert usual.of_share(NEVER, 10_000).high == pytest.approx(0.0004)

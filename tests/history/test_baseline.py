"""The expected band and what lies outside it: from figures written out."""

import pytest

from pgqueue_admin.history.anomalies import detector
from pgqueue_admin.history.anomalies.detector import ObservedHour
from pgqueue_admin.history.rollups import baseline
from pgqueue_admin.history.rollups.baseline import Baseline, BaselineRange, BaselineSet

SPANS = Baseline(90, 100, 110, 8)
NEVER, ALWAYS = Baseline(0, 0, 0, 8), Baseline(1, 1, 1, 8)
BUSY = Baseline(180, 200, 220, 8)


def known(**changes: Baseline | None) -> BaselineSet:
    return BaselineSet(BUSY, NEVER, NEVER, SPANS, SPANS, SPANS)._replace(**changes)


def kinds(seen: ObservedHour, **changes: Baseline | None) -> list[str]:
    return [found.kind for found in detector.of_messages(seen, known(**changes))]


def test_band_is_three_quartile_ranges_and_at_least_half_the_median() -> None:
    assert Baseline(90, 100, 130, 8).band(0) == BaselineRange(0, 250)
    assert Baseline(98, 100, 102, 8).band(0) == BaselineRange(50, 150)
    assert Baseline(9, 10, 11, 3).band(20) == BaselineRange(0, 30)


def test_no_share_is_more_than_all() -> None:
    assert baseline.of_share(Baseline(0.4, 0.5, 0.6, 8), 4) == BaselineRange(0, 1)
    assert baseline.of_share(ALWAYS, 10_000) == BaselineRange(0.5, 1)


def test_slower_is_beyond_the_band_and_not_only_late() -> None:
    assert kinds(ObservedHour(200, 0, 171, 171)) == ["slower"]
    assert kinds(ObservedHour(200, 0, 170, 170)) == []
    assert kinds(ObservedHour(200, 0, 900, 900), nearly_all=None) == [], "too few weeks"


def test_slow_hour_needs_five_slow_messages() -> None:
    assert kinds(ObservedHour(9, 0, p95=9_000, fifth=100)) == []
    assert kinds(ObservedHour(4, 0, p95=9_000, fifth=None)) == []
    assert kinds(ObservedHour(5, 0, p95=9_000, fifth=8_000)) == ["slower"]


@pytest.mark.parametrize(
    ("messages", "failed", "is_unusual"),
    [(5, 4, False), (5, 5, True), (200, 4, False), (200, 5, True), (100_000, 4, False)],
)
def test_failures_in_a_failure_free_series_need_five(messages: int, failed: int, is_unusual: bool) -> None:
    assert (kinds(ObservedHour(messages, failed)) == ["failures"]) == is_unusual


def test_where_twice_as_many_come_twice_as_many_may_fail() -> None:
    fails = {"failures": Baseline(9, 10, 11, 8), "failed": Baseline(0.045, 0.05, 0.055, 8)}
    assert kinds(ObservedHour(1_000, 50), **fails) == []
    assert kinds(ObservedHour(200, 50), **fails) == ["failures"]


def test_failures_only_source_is_judged_by_count_and_never_silent() -> None:
    fails = {"messages": BUSY, "failures": BUSY, "failed": ALWAYS}
    assert kinds(ObservedHour(900, 900), **fails) == ["failures"]
    assert kinds(ObservedHour(250, 250), **fails) == []
    assert kinds(ObservedHour(), **fails) == []


def test_recent_failures_only_source_is_judged_by_share() -> None:
    """A quarter of the weeks had successes: none now is silence, but all failing is usual."""
    late = {"messages": BUSY, "failures": BUSY, "failed": Baseline(0.5, 1, 1, 8)}
    assert kinds(ObservedHour(900, 900), **late) == []
    assert kinds(ObservedHour(), **late) == ["silence"]


def test_as_many_failures_as_the_band_holds_are_in_it() -> None:
    assert kinds(ObservedHour(4, 4), failed=None) == []
    assert kinds(ObservedHour(5, 5), failed=None) == ["failures"]


@pytest.mark.parametrize(
    ("messages", "is_silent"),
    [(BUSY, True), (Baseline(0, 200, 210, 8), False), (Baseline(10, 12, 14, 8), False), (NEVER, False), (None, False)],
    ids=["busy", "quiet in a quarter of the weeks", "so few that none is chance", "never busy", "too few weeks"],
)
def test_silence_is_nothing_where_there_always_is_something(messages: Baseline | None, is_silent: bool) -> None:
    assert (kinds(ObservedHour(), messages=messages) == ["silence"]) == is_silent


def test_growth_is_at_least_twenty_more() -> None:
    assert [found.kind for found in detector.of_depth(21, NEVER)] == ["growth"]
    assert list(detector.of_depth(20, NEVER)) == []
    assert list(detector.of_depth(900, None)) == []


def test_of_few_messages_the_share_may_be_larger() -> None:
    assert baseline.of_share(NEVER, 5).high == pytest.approx(0.8)
    assert baseline.of_share(NEVER, 10_000).high == pytest.approx(0.0004)

"""The text of an anomaly: its limit is neither the value seen beyond it nor one that nothing could keep."""

import math
import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pgqueue_admin.formatting import anomaly
from pgqueue_admin.formatting.numbers import NBSP

Counts = st.integers(1, 10**12)
WITHIN = "19 in 20 within "
ALIKE = re.compile("just under (.*) at most")


def limit(said: str) -> str:
    """``10`` of ``at most 10``, or of ``just under 10 at most``: the latter if the value seen is shown as 10 too."""
    return said.partition(", ")[2].removeprefix("at most ")


def limit_or_alike(kind: str, number: float, high: float) -> str:
    """``10`` of ``at most 10``, or of ``just under 10 at most``, which is used where the value seen is shown as 10
    too.
    """
    said, seen = limit(anomaly.usual(kind, number, 0, 0, high)), anomaly.seen(kind, number, 9).removeprefix(WITHIN)
    alike = ALIKE.fullmatch(said)
    figure = alike[1] if alike else said
    assert bool(alike) == (seen == figure or seen.startswith((f"{figure} of ", f"{figure} waited"))), (said, seen)
    return figure


@pytest.mark.parametrize("kind", ["failures", "growth"])
@example(8, 7.6)
@example(123_456_789, 123_456_700.0)
@given(Counts, st.floats(0, 1e12))
def test_more_than_the_limit_is_more_than_what_is_said_of_it(kind: str, number: int, high: float) -> None:
    assume(number > high)
    figure = limit_or_alike(kind, number, high)
    assert high >= 100_000_000 or int(figure.replace(",", "")) == math.floor(high), "the most that is not unusual"


@example(1_334.1, 1_334.0)
@example(4_370_000, 4_330_000)
@given(st.floats(21, 1e9), st.floats(20, 1e9))
def test_longer_than_the_limit_is_longer_than_what_is_said_of_it(number: float, high: float) -> None:
    assume(number > high)
    limit_or_alike("slower", number, high)


@example(0.4)
@example(4.0)
@given(st.floats(1e-9, 1e7))
def test_lower_limit_of_silence_is_the_first_count_within_the_band(low: float) -> None:
    least = int(anomaly.usual("silence", 0, 90, low, 900).partition("at least ")[2].replace(",", ""))
    assert least - 1 < low <= least


def test_a_band_of_counts_has_the_whole_numbers_in_it() -> None:
    assert anomaly.whole(0.4, 7.6) == (1, 7)
    assert anomaly.whole(0, 156) == (0, 156)


def test_limits_are_rounded_towards_the_usual_range() -> None:
    assert anomaly.usual("failures", 31, 1, 0, 10.8) == "1, at most 10"
    assert anomaly.usual("silence", 0, 150, 59.2, 900) == "150, at least 60"
    said = anomaly.usual("slower", 1_334.1, 850, 0, 1_334)
    assert said == f"≈{NBSP}850{NBSP}ms, just under ≈{NBSP}1.33{NBSP}s at most"

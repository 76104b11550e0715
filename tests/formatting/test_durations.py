"""Lengths of time as people type them."""

import pytest

from pgqueue_admin.formatting import durations


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [
        ("5 days", 432_000),
        ("1 day", 86_400),
        ("2 Hours", 7_200),
        ("1 hour 30 minutes", 5_400),
        ("90 secs", 90),
        ("500 milliseconds", 0.5),
        ("2 weeks", 1_209_600),
        ("1 min 30 s", 90),
        ("3hrs", 10_800),
        ("500ms", 0.5),
        ("2d", 172_800),
    ],
)
def test_units_are_letters_or_words(typed: str, seconds: float) -> None:
    assert durations.parse(typed) == seconds


@pytest.mark.parametrize("typed", ["5", "days", "5 years", "5 mss", "5 ss", "-1 day", "1 day or so", "", "5 monthss"])
def test_text_that_is_no_duration_parses_to_none(typed: str) -> None:
    assert durations.parse(typed) is None

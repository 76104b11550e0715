"""How many a second, in the last minute."""

import pytest

from pgqueue_admin.workers.reporting.rate_counter import RateCounter

BEGAN = 1_000.5


def test_a_fast_one_is_told_as_fast_as_it_is() -> None:
    pace = RateCounter(BEGAN)
    for number in range(90 * 3_000):
        pace.add(BEGAN + number / 3_000)
    assert pace.per_second(BEGAN + 90) == pytest.approx(3_000, rel=0.001)


def test_the_first_moment_is_a_second_long() -> None:
    pace = RateCounter(BEGAN)
    pace.add(BEGAN)
    assert pace.per_second(BEGAN + 0.25) == 1
    assert pace.per_second(BEGAN + 4) == 1 / 4


@pytest.mark.parametrize("later", [1, 30, 59])
def test_a_burst_counts_whole_for_a_minute(later: float) -> None:
    pace = RateCounter(BEGAN - 600)
    for _ in range(6_000):
        pace.add(BEGAN)
    assert pace.per_second(BEGAN + later) == pytest.approx(100, rel=0.02)
    assert pace.per_second(BEGAN + 60) == 0


def test_nobody_need_ask_meanwhile() -> None:
    """While the console's database is away nobody does; what was handled before the last minute is not of it."""
    pace = RateCounter(BEGAN)
    for later in (0, 7, 68, 1_068):
        pace.add(BEGAN + later)
    assert pace.per_second(BEGAN + 1_120) == pytest.approx(1 / 60, rel=0.02)

"""The last minute of a process: messages per second, and the share of time that slots were busy."""

import pytest

from pgqueue_admin.workers.reporting.throughput import BusyTime, RateCounter

# Messages per second in the last minute.
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


def test_rate_is_right_without_reads_in_between() -> None:
    """Nothing reads it while the console's database is away; older messages must not count then."""
    pace = RateCounter(BEGAN)
    for later in (0, 7, 68, 1_068):
        pace.add(BEGAN + later)
    assert pace.per_second(BEGAN + 1_120) == pytest.approx(1 / 60, rel=0.02)


# The share of the last minute that slots were busy.
class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_the_share_counts_what_is_finished_and_what_is_in_hand() -> None:
    clock = Clock()
    time = BusyTime(clock)
    assert time.share(2) is None, "no time has passed"
    time.take(0)
    clock.now += 5
    time.put_down(0)
    time.take(1)
    clock.now += 5
    assert time.busy == 1
    assert time.share(2) == pytest.approx(10 / 20)


def test_busy_share_covers_the_last_minute_only() -> None:
    clock = Clock()
    time = BusyTime(clock)
    time.take(0)
    for _ in range(100):
        clock.now += 1
        time.share(1)
    time.put_down(0)
    for _ in range(60):
        clock.now += 1
        last = time.share(1)
    assert last == pytest.approx(0, abs=0.02)


def test_a_slot_that_takes_the_next_without_putting_down_loses_no_time() -> None:
    clock = Clock()
    time = BusyTime(clock)
    time.take(0)
    clock.now += 3
    time.take(0)
    clock.now += 3
    assert time.share(1) == 1.0

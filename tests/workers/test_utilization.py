"""How much of the last minute slots had a message in hand."""

import pytest

from pgqueue_admin.workers.reporting.utilization import BusyTime


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


def test_it_looks_back_a_minute_and_no_further() -> None:
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

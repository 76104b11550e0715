"""Changes from sample to sample: arrivals, rates, and where the next measurement may begin."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.monitor.depth import LATE, WINDOW
from pgqueue_admin.monitor.depth_result import BETWEEN, QueueDepth
from pgqueue_admin.monitor.queue_history import Arrivals, QueueHistory, RememberedDepth

START = datetime(2026, 11, 20, 17, 35, tzinfo=UTC)
EMPTY = QueueDepth(START, sent_total=100)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def holding(head: int, tail: int, **facts: Any) -> QueueDepth:
    count = tail - head + 1
    ends: dict[str, Any] = {"head_seq": head, "tail_seq": tail, "ready_seq": head, "sent_total": tail}
    marks = tuple(range(head, min(tail, head + WINDOW - 1) + 1, BETWEEN))
    return replace(EMPTY, depth=count, ready=count, marks=marks, **ends, **facts)


def test_a_head_arrived_when_it_was_first_seen_as_tail() -> None:
    track = QueueHistory()
    track.note(at(0), EMPTY)
    track.note(at(1), holding(101, 103))
    track.note(at(2), holding(101, 110))
    track.note(at(3), holding(104, 110))
    assert track.oldest() == (at(2), "exact")


def test_first_seen_head_is_dated_by_timesent() -> None:
    track = QueueHistory()
    track.note(at(0), holding(50, 60))
    assert track.wants_sent_at() == 50
    track.note_sent_at(50, at(-100))
    assert (track.oldest(), track.wants_sent_at()) == ((at(-100), "estimate"), None)


def test_without_timesent_it_is_at_least_as_old_as_our_looking() -> None:
    track = QueueHistory()
    track.note(at(0), holding(50, 60))
    track.note_sent_at(50, None)
    track.note(at(9), holding(50, 61))
    assert (track.oldest(), track.wants_sent_at()) == ((at(0), "least"), None)
    track.note(at(10), holding(61, 61))
    assert track.oldest() == (at(9), "exact")


def test_a_restarted_sampler_keeps_what_the_one_before_knew() -> None:
    track = QueueHistory(RememberedDepth(ready_seq=50, head_seq=50, oldest_at=at(-100), oldest_how="exact"))
    track.note(at(0), holding(50, 60))
    assert track.oldest() == (at(-100), "exact")
    moved = QueueHistory(RememberedDepth(ready_seq=40, head_seq=40, oldest_at=at(-100), oldest_how="exact"))
    moved.note(at(0), holding(50, 60))
    assert (moved.oldest()[0], moved.last_departure_at) == (None, at(0))


def test_rates_need_two_samples() -> None:
    track = QueueHistory()
    track.note(at(0), EMPTY)
    assert track.rates.in_per_second is None
    track.note(at(10), holding(121, 150))
    assert (track.rates.in_per_second, track.rates.out_per_second) == (5.0, 2.0)


def test_rates_are_those_of_the_last_half_minute() -> None:
    track = QueueHistory()
    for second in range(0, 100, 10):
        track.note(at(second), holding(1, 100 + second))
    assert track.rates.in_per_second == 1.0
    for second in range(100, 140, 10):
        track.note(at(second), holding(1, 190))
    assert track.rates.in_per_second == 0.0


def test_past_the_cap_the_head_tells_what_left() -> None:
    track = QueueHistory()
    track.note(at(0), holding(1, 50_000, how="estimate"))
    track.note(at(10), holding(201, 50_000, how="estimate"))
    assert track.rates.out_per_second == 20.0


def test_past_the_cap_a_gap_behind_the_head_is_no_message_that_left() -> None:
    """Ten were received; the 20,000 numbers behind them belong to no message."""
    gap: dict[str, Any] = {"how": "estimate", "depth": 30_010, "marks": (1, *range(20_041, 21_000, BETWEEN))}
    track = QueueHistory()
    track.note(at(0), replace(holding(1, 50_000), **gap))
    track.note(at(10), replace(holding(20_001, 50_000, how="estimate"), depth=30_000))
    assert track.rates.out_per_second == pytest.approx(1, abs=BETWEEN / 10)


def test_past_the_cap_those_beyond_the_marks_are_as_dense_as_all() -> None:
    track = QueueHistory()
    track.note(at(0), replace(holding(1, 100_000, how="estimate"), depth=50_000))
    track.note(at(10), replace(holding(20_001, 100_000, how="estimate"), depth=40_000))
    assert track.rates.out_per_second == pytest.approx(1000, rel=0.1)


def test_a_sequence_that_went_back_starts_anew() -> None:
    track = QueueHistory()
    track.note(at(0), holding(1, 500))
    track.note(at(1), replace(EMPTY, sent_total=3))
    assert track.rates.in_per_second is None


def test_the_first_message_after_a_restart_is_not_dated_by_its_namesake() -> None:
    """TRUNCATE ... RESTART IDENTITY: the new seq 2 has the number of a message that arrived long ago."""
    track = QueueHistory(
        RememberedDepth(ready_seq=2, head_seq=2, oldest_at=at(-100), oldest_how="exact", last_departure_at=at(-5))
    )
    track.note(at(0), replace(EMPTY, sent_total=1))
    track.note(at(1), holding(2, 500))
    track.note_sent_at(2, at(-50))
    track.note(at(300), holding(2, 3))
    assert track.oldest() == (None, "estimate")
    assert track.wants_sent_at() == 2
    track.note_sent_at(2, None)
    assert track.oldest() == (at(300), "least")
    assert (track.changed_at, track.last_departure_at) == (at(300), at(0))
    track.note(at(301), holding(4, 5))
    assert track.oldest() == (at(301), "exact")


def test_a_restart_while_nobody_looked() -> None:
    before = RememberedDepth(ready_seq=2, head_seq=1, oldest_at=at(-100), oldest_how="exact", sent_total=500)
    track = QueueHistory(before)
    track.note(at(0), holding(2, 3))
    assert track.oldest() == (None, "estimate")
    assert track.last_departure_at is None
    went_on = QueueHistory(before)
    went_on.note(at(0), holding(2, 500))
    assert went_on.oldest() == (at(-100), "exact")


def test_a_restart_is_looked_at_from_the_bottom() -> None:
    track = QueueHistory()
    track.note(at(0), holding(600_001, 600_010, seconds=0.22))
    track.note(at(1), replace(EMPTY, sent_total=3))
    assert track.begin_at(at(2)) is None


def test_when_a_message_last_left() -> None:
    track = QueueHistory()
    track.note(at(0), holding(1, 10))
    track.note(at(1), holding(1, 12))
    assert track.last_departure_at is None
    track.note(at(2), holding(2, 12))
    track.note(at(3), holding(2, 12))
    assert (track.last_departure_at, track.changed_at) == (at(2), at(2))


def test_numbers_taken_by_open_or_undone_inserts_are_no_departures() -> None:
    """Sequences are not transactional: they run ahead of the rows, but nobody received any."""
    track = QueueHistory()
    track.note(at(0), holding(1, 10))
    track.note(at(1), replace(holding(1, 10), sent_total=15))
    track.note(at(2), replace(holding(1, 12), sent_total=40))
    assert track.last_departure_at is None


def test_departures_from_a_growing_queue_are_seen_at_its_head() -> None:
    track = QueueHistory()
    for second in range(3):
        track.note(at(second), holding(1 + second, 100 + 50 * second))
    assert track.last_departure_at == at(2)
    for second in range(3, 6):
        track.note(at(second), holding(1 + 9 * second, 50_000 * second, how="estimate"))
    assert track.last_departure_at == at(5)


def test_fewer_are_fewer_whichever_were_taken() -> None:
    """The first stays in flight while others pass it."""
    track = QueueHistory()
    track.note(at(0), holding(1, 10))
    track.note(at(1), replace(holding(1, 10), depth=9, ready=8, in_flight=1))
    assert track.last_departure_at == at(1)


def test_an_estimate_that_fell_proves_nothing() -> None:
    track = QueueHistory()
    track.note(at(0), holding(1, 50_000, how="estimate"))
    track.note(at(1), replace(holding(1, 50_000, how="estimate"), depth=49_000))
    assert track.last_departure_at is None


def test_a_queue_that_is_empty_at_every_look_is_received_from() -> None:
    track = QueueHistory()
    track.note(at(0), EMPTY)
    track.note(at(1), replace(EMPTY, sent_total=120))
    track.note(at(2), replace(EMPTY, sent_total=120))
    assert track.last_departure_at == at(1)


def test_a_message_that_comes_behind_a_lower_one_is_no_departure() -> None:
    track = QueueHistory()
    track.note(at(0), holding(11, 20))
    track.note(at(1), holding(9, 20))
    assert track.last_departure_at is None


def test_arrivals_during_a_gap_are_not_dated_by_the_next_sample() -> None:
    track = QueueHistory()
    track.note(at(0), EMPTY)
    track.note(at(1), holding(101, 103))
    track.note(at(1800), holding(101, 110))
    assert track.oldest() == (at(1), "exact")  # still true of the message that was first before
    track.note(at(1801), holding(105, 112))
    assert track.wants_sent_at() == 105
    track.note_sent_at(105, at(900))
    assert track.oldest() == (at(900), "estimate")
    track.note(at(1802), holding(106, 112))
    track.note_sent_at(106, None)
    assert track.oldest() == (at(1800), "least")
    track.note(at(1803), holding(111, 112))
    assert track.oldest() == (at(1801), "exact")


def test_rates_do_not_reach_over_a_time_when_nobody_looked() -> None:
    track = QueueHistory()
    track.note(at(0), holding(1, 100))
    track.note(at(1800), holding(1, 1900))
    assert (track.rates.in_per_second, track.rates.out_per_second) == (None, None)
    track.note(at(1801), holding(1, 1905))
    assert track.rates.in_per_second == 5.0


def test_a_clock_that_steps_back_is_a_restart() -> None:
    """After a failover to a standby an hour behind, times in the future are reduced to now."""
    track = QueueHistory()
    track.note(at(3600), EMPTY)
    track.note(at(3601), holding(101, 103))
    track.note(at(1), holding(102, 110))
    assert (track.rates.in_per_second, track.wants_sent_at()) == (None, 102)
    track.note(at(2), holding(102, 115, seconds=0.2))
    assert (track.rates.in_per_second, track.low_water_checked_at) == (5.0, at(2))
    assert (track.changed_at, track.last_departure_at) == (at(2), at(1))
    track.note_sent_at(102, None)
    assert track.oldest() == (at(1), "least")
    track.note(at(-50), holding(102, 115))
    assert (track.oldest(), track.changed_at, track.last_departure_at) == ((at(-50), "least"), at(-50), at(-50))
    assert track.begin_at(at(-49)) is None
    before = RememberedDepth(
        ready_seq=102, head_seq=102, oldest_at=at(0), oldest_how="exact", last_departure_at=at(3), changed_at=at(3)
    )
    again = QueueHistory(before)
    again.note(at(-60), holding(102, 115))
    assert (again.oldest(), again.last_departure_at) == ((at(-60), "least"), at(-60))


def test_changes_during_a_gap_are_dated_by_the_next_sample() -> None:
    track = QueueHistory()
    track.note(at(0), holding(1, 10))
    track.note(at(1800), holding(1, 10))
    assert (track.changed_at, track.last_departure_at) == (at(0), None)
    track.note(at(3600), holding(5, 10))
    assert (track.changed_at, track.last_departure_at) == (at(3600), at(3600))


def test_infrequent_sampling_still_gives_age_and_rates() -> None:
    track = QueueHistory(blind_after=timedelta(seconds=300))
    track.note(at(0), EMPTY)
    track.note(at(60), holding(101, 160))
    assert (track.oldest(), track.rates.in_per_second) == ((at(60), "exact"), 1.0)


def test_looking_begins_at_the_bottom_while_that_is_cheap() -> None:
    track = QueueHistory()
    track.note(at(0), holding(600_001, 600_010))
    assert track.begin_at(at(1)) is None


def test_a_slow_look_makes_the_next_ones_begin_near_the_head() -> None:
    """600,000 dead rows before the head: finding the lowest seq takes 220 ms, so it is done only every 11 s."""
    track = QueueHistory()
    track.note(at(0), holding(600_001, 600_010, seconds=0.22))
    assert track.begin_at(at(1)) == 600_001 - LATE
    track.note(at(1), holding(600_005, 600_010, seconds=0.001))
    assert track.begin_at(at(10.9)) == 600_005 - LATE
    assert (track.begin_at(at(11)), track.low_water_checked_at) == (None, at(0))
    track.note(at(11), holding(600_005, 600_010, seconds=0.001))
    assert (track.begin_at(at(12)), track.low_water_checked_at) == (None, at(11))


def test_arrivals_stay_bounded_and_ordered() -> None:
    arrivals = Arrivals()
    for seq in range(20_000):
        arrivals.note(seq, at(seq))
    assert len(arrivals._seqs) <= 4096
    assert arrivals.of(19_999) == at(19_999)
    assert (arrivals.of(0), arrivals.of(20_000)) == (None, None)
    early = arrivals.of(10)
    assert early is not None
    assert at(10) <= early <= at(10_000)

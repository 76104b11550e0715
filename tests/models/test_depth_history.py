"""Samples are folded into minutes, hours and days, then joined with live ones; each sample counts once."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import DepthBucket, Queue, Sample, database_clock, depth_history, samples
from pgqueue_admin.models.depth_history import ALL, DepthPoint

pytestmark = pytest.mark.usefixtures("console_database")
TEN = datetime(2026, 11, 14, 10, 0, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def sales() -> Queue:
    return Queue.objects.create(schema="public", table="Sales", kind="input")


def sampled(queue: Queue, at: datetime, *values: int | None, every: timedelta = 10 * SECOND) -> None:
    Sample.objects.bulk_create(Sample(queue=queue, at=at + i * every, depth=depth) for i, depth in enumerate(values))


def found(queue: int, grain: str) -> list[tuple[str, int, int, int, bool]]:
    """Each step of two days as (time, low, median, high, live)."""
    steps = depth_history.steps(queue, grain, TEN - DAY, TEN + DAY)
    return [
        (datetime.fromtimestamp(at, UTC).strftime("%d %H:%M"), *depth[:3], depth.is_live) for at, depth in steps.items()
    ]


def test_past_minutes_are_folded_and_the_current_one_is_live(sales: Queue) -> None:
    sampled(sales, TEN, 3, 9, 4, 1, 5, 5)
    sampled(sales, TEN + MINUTE, 7, None, 8)
    assert depth_history.fold(TEN + MINUTE + 40 * SECOND) == 2  # one for the queue, one for all queues
    assert found(sales.pk, "minute") == [("14 10:00", 1, 4, 9, False), ("14 10:01", 7, 7, 8, True)]
    assert found(sales.pk, "hour") == [("14 10:00", 1, 4, 9, True)]
    assert found(sales.pk, "day") == [("14 00:00", 1, 4, 9, True)]


def test_hours_and_days_are_folded_from_their_minutes(sales: Queue) -> None:
    sampled(sales, TEN, 1, 2, 30, 4, 5, every=MINUTE)
    sampled(sales, TEN + HOUR, 7)
    depth_history.fold(TEN + HOUR + 2 * MINUTE)
    assert found(sales.pk, "hour") == [("14 10:00", 1, 4, 30, False), ("14 11:00", 7, 7, 7, True)]
    depth_history.fold(TEN + DAY)
    assert found(sales.pk, "day") == [("14 00:00", 1, 4, 30, False)]
    assert found(sales.pk, "hour")[-1] == ("14 11:00", 7, 7, 7, False)


def test_all_input_queues_are_added_look_by_look(sales: Queue) -> None:
    mail = Queue.objects.create(schema="public", table="Mail", kind="input")
    error = Queue.objects.create(schema="public", table="error", kind="error")
    for queue, values in ((sales, (1, 5, 3)), (mail, (10, 0, 10)), (error, (99, 99, 99))):
        sampled(queue, TEN, *values)
    assert found(ALL, "minute") == [("14 10:00", 5, 11, 13, True)]
    depth_history.fold(TEN + HOUR)
    assert found(ALL, "minute") == [("14 10:00", 5, 11, 13, False)]


@pytest.mark.parametrize("is_folded", [False, True])
def test_a_step_is_known_as_the_worst_of_its_looks_and_a_sum_as_its_parts(sales: Queue, is_folded: bool) -> None:
    mail = Queue.objects.create(schema="public", table="Mail", kind="input")
    for queue, hows in ((sales, ("counted", "capped", "counted")), (mail, ("counted", "counted", "estimate"))):
        looked(queue, TEN, *({"how": how} for how in hows))
    looked(sales, TEN + MINUTE, {})
    looked(mail, TEN + MINUTE, {})
    if is_folded:
        depth_history.fold(TEN + HOUR + MINUTE)
    told = {
        grain: [
            [depth.how for depth in depth_history.steps(queue, grain, TEN - DAY, TEN + DAY).values()] for queue in asked
        ]
        for grain, asked in (("minute", (sales.pk, mail.pk, ALL)), ("hour", (ALL,)))
    }
    assert told["minute"] == [["capped", "counted"], ["estimate", "counted"], ["about-least", "counted"]]
    assert told["hour"] == [["about-least"]]


def test_how_is_not_known_where_it_was_not_kept(sales: Queue) -> None:
    for minutes, how in enumerate((None, "counted")):
        known = {"low": 1, "median": 1, "high": 1, "how": how}
        DepthBucket.objects.create(grain="minute", at=TEN + minutes * MINUTE, queue=sales.pk, **known)
    told = depth_history.steps(sales.pk, "hour", TEN - DAY, TEN + DAY).values()
    assert [depth.how for depth in told] == [None]


@pytest.mark.parametrize("is_folded", [False, True])
def test_a_sum_that_lacks_queues_says_how_many(sales: Queue, is_folded: bool) -> None:
    """Those queues have a sample without figures. If none was readable there is no sum; an age is a lower bound."""
    mail, bills = (Queue.objects.create(schema="public", table=name, kind="input") for name in ("Mail", "Bills"))
    looked(sales, TEN, {}, {}, waiting(TEN), {})
    looked(mail, TEN, {}, *2 * [{"depth": None, "ready": None}], {})
    looked(bills, TEN, {}, {}, *2 * [{"depth": None, "ready": None}], {})
    for queue in (sales, mail, bills):
        looked(queue, TEN + MINUTE, {"depth": None, "ready": None})
        looked(queue, TEN + 2 * MINUTE, {})
    if is_folded:
        depth_history.fold(TEN + HOUR + MINUTE)
    told = depth_history.steps(ALL, "minute", TEN - DAY, TEN + DAY)
    assert [(depth.low, depth.high, depth.unread) for depth in told.values()] == [(9, 27, 2), (27, 27, 0)]
    assert [depth.unread for depth in depth_history.steps(ALL, "hour", TEN - DAY, TEN + DAY).values()] == [2]
    assert [depth.unread for depth in depth_history.steps(sales.pk, "minute", TEN - DAY, TEN + DAY).values()] == [
        None,
        None,
    ]
    assert next(iter(told.values())).oldest_at_least is True


def test_folding_again_changes_nothing(sales: Queue) -> None:
    sampled(sales, TEN, *range(40))
    depth_history.fold(TEN + HOUR)
    before = list(DepthBucket.objects.order_by("id").values())
    assert depth_history.fold(TEN + HOUR) == 0
    assert list(DepthBucket.objects.order_by("id").values()) == before


def test_nothing_is_thinned_that_was_not_folded(sales: Queue) -> None:
    """One Celery task does both: ten-second samples of an hour are deleted, their low and high stay."""
    began = database_clock.now().replace(minute=0, second=0, microsecond=0) - 5 * HOUR
    sampled(sales, began, 50, 1, 99, 50, 50, 50)
    assert tasks.thin_samples() == 5
    assert depth_history.steps(sales.pk, "minute", began, began + HOUR) == {
        int(began.timestamp()): DepthPoint(1, 50, 99, how="counted")
    }


def looked(queue: Queue, at: datetime, *samples: dict[str, Any]) -> None:
    """Store samples ten seconds apart, of a queue with nine ready messages unless given otherwise."""
    usual = {"depth": 9, "ready": 9}
    Sample.objects.bulk_create(
        Sample(queue=queue, at=at + i * 10 * SECOND, **usual | each) for i, each in enumerate(samples)
    )


def rates(queue: int, grain: str) -> list[tuple[float | None, ...]]:
    """Each step of two days: rates in and out, rated minutes, longest wait, whether that is a lower bound."""
    return [depth[3:8] for depth in depth_history.steps(queue, grain, TEN - DAY, TEN + DAY).values()]


def moving(entering: float | None, leaving: float | None) -> dict[str, float | None]:
    return {"in_per_second": entering, "out_per_second": leaving}


def waiting(since: datetime, how: str = "exact", **about: int) -> dict[str, Any]:
    return {"oldest_at": since, "oldest_how": how, **about}


@pytest.mark.parametrize("is_folded", [False, True])
def test_rates_are_the_average_of_looks_and_minutes_that_know_them(sales: Queue, is_folded: bool) -> None:
    """The first sample has no rate, and an hour is averaged over its two rated minutes: unknown is not zero."""
    looked(sales, TEN, moving(None, None), moving(4, 2), moving(2, 0))
    looked(sales, TEN + MINUTE, moving(None, None))
    looked(sales, TEN + 2 * MINUTE, moving(6, None))
    if is_folded:
        assert depth_history.fold(TEN + HOUR + MINUTE) == 8
    assert rates(sales.pk, "minute") == [(3, 1, 1, None, None), (None,) * 5, (6, None, 1, None, None)]
    assert rates(sales.pk, "hour") == [(4.5, 1, 2, None, None)]
    depth_history.fold(TEN + DAY)
    assert rates(sales.pk, "day") == [(4.5, 1, 2, None, None)]


@pytest.mark.parametrize("is_folded", [False, True])
def test_the_age_of_a_step_is_the_longest_that_a_ready_message_waited(sales: Queue, is_folded: bool) -> None:
    """None if no message is ready or its arrival was not seen; 0 if the sender's clock is ahead."""
    looked(sales, TEN, waiting(TEN - 5 * SECOND), waiting(TEN - 5 * SECOND), waiting(TEN - HOUR, ready=0), {})
    looked(sales, TEN + MINUTE, waiting(TEN, "least"), waiting(TEN + 50 * SECOND))
    looked(sales, TEN + 2 * MINUTE, {})
    looked(sales, TEN + 3 * MINUTE, waiting(TEN + HOUR, "estimate"))
    if is_folded:
        depth_history.fold(TEN + HOUR + MINUTE)
    ages = [each[3:] for each in rates(sales.pk, "minute")]
    assert ages == [(15, False), (60, True), (None, None), (0, False)]
    assert [each[3:] for each in rates(sales.pk, "hour")] == [(60, True)]


def test_a_rate_of_all_is_known_where_each_queue_has_one(sales: Queue) -> None:
    """A sum that lacks a queue would be wrong. The oldest age of all queues is that of the oldest message seen."""
    mail = Queue.objects.create(schema="public", table="Mail", kind="input")
    error = Queue.objects.create(schema="public", table="error", kind="error")
    looked(sales, TEN, {**moving(1, 2), **waiting(TEN - HOUR)}, moving(9, 9), {**moving(3, 1), **waiting(TEN)})
    looked(mail, TEN, {**moving(5, 0), **waiting(TEN - MINUTE)}, moving(None, None), moving(7, None))
    looked(error, TEN, *[{**moving(99, 99), **waiting(TEN - DAY)}] * 3)
    looked(sales, TEN + MINUTE, waiting(TEN))
    looked(mail, TEN + MINUTE, {})  # ready, since an unknown time
    assert rates(ALL, "minute") == [(8, 2, 1, 3600, False), (None, None, None, 60, True)]
    depth_history.fold(TEN + HOUR)
    assert rates(ALL, "minute") == [(8, 2, 1, 3600, False), (None, None, None, 60, True)]


def test_steps_that_were_folded_before_rates_were_kept_leave_them_unknown(sales: Queue) -> None:
    for minute, known in ((0, {}), (1, {**moving(3, 2), "rated_minutes": 1, "oldest_seconds": 7.5})):
        at = TEN + minute * MINUTE
        DepthBucket.objects.create(grain="minute", at=at, queue=sales.pk, low=1, median=2, high=3, **known)
    depth_history.fold(TEN + HOUR + MINUTE)
    assert rates(sales.pk, "minute") == [(None,) * 5, (3, 2, 1, 7.5, None)]
    assert rates(sales.pk, "hour") == [(3, 2, 1, 7.5, None)]


def test_days_outlive_minutes_and_hours(sales: Queue) -> None:
    sampled(sales, TEN, 4)
    depth_history.fold(TEN + DAY)
    assert set(DepthBucket.objects.values_list("grain", flat=True)) == {"minute", "hour", "day"}
    depth_history.fold(TEN + 31 * DAY)
    assert set(DepthBucket.objects.values_list("grain", flat=True)) == {"hour", "day"}
    depth_history.fold(TEN + 900 * DAY)
    assert set(DepthBucket.objects.values_list("grain", flat=True)) == {"day"}
    assert samples.thin(TEN + 900 * DAY) == 1

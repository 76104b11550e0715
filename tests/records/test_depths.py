"""Samples folded into minutes, hours and days, and joined with live ones: each sample counted once."""

from datetime import UTC, datetime, timedelta

import pytest

from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.records import clock, depths, samples
from pgqueue_admin.records.depths import ALL, Depth
from pgqueue_admin.records.models import DepthStep, Queue, Sample

pytestmark = pytest.mark.usefixtures("console_database")
TEN = datetime(2026, 11, 14, 10, 0, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def sales() -> Queue:
    return Queue.objects.create(schema="public", table="Sales", kind="input")


def sampled(queue: Queue, at: datetime, *values: int | None, every: timedelta = 10 * SECOND) -> None:
    Sample.objects.bulk_create(Sample(queue=queue, at=at + i * every, depth=depth) for i, depth in enumerate(values))


def found(queue: int, grain: str) -> list[tuple[str, int, int, int, bool]]:
    """Each step of two days as time, least, median, most, live."""
    steps = depths.steps(queue, grain, TEN - DAY, TEN + DAY)
    return [(datetime.fromtimestamp(at, UTC).strftime("%d %H:%M"), *depth) for at, depth in steps.items()]


def test_what_is_over_is_folded_and_what_is_not_is_live(sales: Queue) -> None:
    sampled(sales, TEN, 3, 9, 4, 1, 5, 5)
    sampled(sales, TEN + MINUTE, 7, None, 8)
    assert depths.fold(TEN + MINUTE + 40 * SECOND) == 2  # the queue's own, and that of all
    assert found(sales.pk, "minute") == [("14 10:00", 1, 4, 9, False), ("14 10:01", 7, 7, 8, True)]
    assert found(sales.pk, "hour") == [("14 10:00", 1, 4, 9, True)]
    assert found(sales.pk, "day") == [("14 00:00", 1, 4, 9, True)]


def test_hours_and_days_are_folded_from_their_minutes(sales: Queue) -> None:
    sampled(sales, TEN, 1, 2, 30, 4, 5, every=MINUTE)
    sampled(sales, TEN + HOUR, 7)
    depths.fold(TEN + HOUR + 2 * MINUTE)
    assert found(sales.pk, "hour") == [("14 10:00", 1, 4, 30, False), ("14 11:00", 7, 7, 7, True)]
    depths.fold(TEN + DAY)
    assert found(sales.pk, "day") == [("14 00:00", 1, 4, 30, False)]
    assert found(sales.pk, "hour")[-1] == ("14 11:00", 7, 7, 7, False)


def test_all_input_queues_are_added_look_by_look(sales: Queue) -> None:
    mail = Queue.objects.create(schema="public", table="Mail", kind="input")
    error = Queue.objects.create(schema="public", table="error", kind="error")
    for queue, values in ((sales, (1, 5, 3)), (mail, (10, 0, 10)), (error, (99, 99, 99))):
        sampled(queue, TEN, *values)
    assert found(ALL, "minute") == [("14 10:00", 5, 11, 13, True)]
    depths.fold(TEN + HOUR)
    assert found(ALL, "minute") == [("14 10:00", 5, 11, 13, False)]


def test_folding_again_changes_nothing(sales: Queue) -> None:
    sampled(sales, TEN, *range(40))
    depths.fold(TEN + HOUR)
    before = list(DepthStep.objects.order_by("id").values())
    assert depths.fold(TEN + HOUR) == 0
    assert list(DepthStep.objects.order_by("id").values()) == before


def test_nothing_is_thinned_that_was_not_folded(sales: Queue) -> None:
    """Beat sends one task for both: an hour of ten-second samples goes, its least and most stay."""
    began = clock.now().replace(minute=0, second=0, microsecond=0) - 5 * HOUR
    sampled(sales, began, 50, 1, 99, 50, 50, 50)
    assert tasks.thin_samples() == 5
    assert depths.steps(sales.pk, "minute", began, began + HOUR) == {int(began.timestamp()): Depth(1, 50, 99, False)}


def test_days_outlive_minutes_and_hours(sales: Queue) -> None:
    sampled(sales, TEN, 4)
    depths.fold(TEN + DAY)
    assert set(DepthStep.objects.values_list("grain", flat=True)) == {"minute", "hour", "day"}
    depths.fold(TEN + 31 * DAY)
    assert set(DepthStep.objects.values_list("grain", flat=True)) == {"hour", "day"}
    depths.fold(TEN + 900 * DAY)
    assert set(DepthStep.objects.values_list("grain", flat=True)) == {"day"}
    assert samples.thin(TEN + 900 * DAY) == 1

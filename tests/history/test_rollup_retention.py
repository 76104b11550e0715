"""Minutes are deleted first, then hours; days stay. A window that reaches further back is shown in what remains."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections

from pgqueue_admin.history.rollups import closed_periods, retention
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import (
    CountBucket,
    FailureBucket,
    FailureRollup,
    LatencyBucket,
    RetryOutcome,
    Rollup,
    database_clock,
)
from tests.history.rollup_factory import failed, rolled_up, told

pytestmark = pytest.mark.usefixtures("console_database")
NOW = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def counted(at: datetime) -> None:
    """One message in each grain, as a batch counts it."""
    day = at.replace(hour=0, minute=0)
    for grain, begun in (("minute", at), ("hour", at.replace(minute=0)), ("day", day)):
        rolled_up(begun, delivery={100: 1}, grain=grain)


def left() -> dict[str, int]:
    return {grain: Rollup.objects.filter(grain=grain).count() for grain in ("minute", "hour", "day")}


def test_minutes_go_before_hours_and_days_stay() -> None:
    for days in (1, 29, 31, 799, 801, 4000):
        counted(NOW - days * DAY)
    assert retention.forget(NOW) == 4 + 2
    assert left() == {"minute": 2, "hour": 4, "day": 6}
    assert retention.forget(NOW) == 0


def test_a_chunk_is_the_oldest_by_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows to keep come first in the table and are not scanned."""
    monkeypatch.setattr(retention, "CHUNK", 50)
    ages = [timedelta(days=1 + 60 * (i // 3_000), minutes=i % 3_000) for i in range(6_000)]
    timings: dict[str, list[int]] = {f"{name}_buckets": [] for name in ("critical", "processing", "delivery")}
    timings |= {name.replace("_buckets", "_counts"): [] for name in timings}
    Rollup.objects.bulk_create(Rollup(grain="minute", at=NOW - age, messages=1, skewed=0, **timings) for age in ages)
    with connections["default"].cursor() as cursor:
        cursor.execute("analyze pgqueue_rollup")
    plan = next(retention._too_old(NOW))[: retention.CHUNK].explain()
    assert "Index" in plan
    assert "Seq Scan" not in plan
    assert retention.forget(NOW) == 50
    assert Rollup.objects.filter(at__lt=NOW - 30 * DAY).latest("at").at == NOW - 61 * DAY
    assert Rollup.objects.earliest("at").at == NOW - 61 * DAY - timedelta(minutes=2_949)


def test_closed_periods_are_removed_with_their_rollups() -> None:
    for days in (799, 801):
        counted(NOW - days * DAY)
    while closed_periods.finalize(NOW):
        pass
    retention.forget(NOW)
    for model in (CountBucket, LatencyBucket):
        steps = [step.grain for step in model._default_manager.filter(endpoint="", queue="", type="", at__lt=NOW)]
        assert set(steps) == {"hour", "day"}
        assert not model._default_manager.filter(grain="hour", at__lt=NOW - 800 * DAY).exists()
        assert model._default_manager.filter(grain="day", at__lt=NOW - 800 * DAY).exists()


def test_failures_and_stories_stay_as_long_as_hours() -> None:
    for days in (799, 801):
        at = NOW - days * DAY
        failed(at, "f")
        told("failed", at, last_failed_at=at)
        told("succeeded", at, last_succeeded_at=at)
    retention.forget(NOW)
    assert (FailureRollup.objects.count(), RetryOutcome.objects.count()) == (1, 2)


def test_failures_of_an_hour_or_day_go_once_all_of_it_is_too_old() -> None:
    """Later failures of that day are still known by minute, and a day's row stands for all of it."""
    for days in (799, 800, 801):
        counted(NOW - days * DAY)
        failed(NOW - days * DAY, "f")
    while closed_periods.finalize(NOW):
        pass
    retention.forget(NOW)
    left = FailureBucket.objects.order_by("grain", "at").values_list("grain", "at")
    day, hour = NOW.replace(hour=0, minute=0), NOW.replace(minute=0)
    assert list(left) == [
        (grain, at - days * DAY) for grain, at in (("day", day), ("hour", hour)) for days in (800, 799)
    ]


def test_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "CHUNK", 2)
    for _ in range(5):
        rolled_up(NOW - 31 * DAY)
    assert [retention.forget(NOW) for _ in range(4)] == [2, 2, 1, 0]


def test_beat_has_all_of_it_done() -> None:
    rolled_up(database_clock.now() - 31 * DAY)
    tasks.forget_figures()
    assert not Rollup.objects.exists()


def test_zero_is_for_ever(settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "TRENDS_MINUTE_RETENTION_DAYS": 0, "TRENDS_HOUR_RETENTION_DAYS": 0}
    counted(NOW - 4000 * DAY)
    assert retention.forget(NOW) == 0


def test_a_window_takes_the_finest_grain_that_reaches_so_far_back() -> None:
    for days in (1, 40, 900):
        counted(NOW - days * DAY)
    assert finest(40) == "minute"
    retention.forget(NOW)
    asked = {days: finest(days) for days in (0, 1, 2, 40, 41, 900)}
    assert asked == {0: "minute", 1: "minute", 2: "minute", 40: "hour", 41: "minute", 900: "day"}
    assert finest(900, "day") == "day"
    assert retention.finest("minute", NOW - 901 * DAY, NOW) == "day"


def test_steps_reach_back_to_where_the_first_one_begins() -> None:
    counted(NOW)
    assert retention.reaches("minute", NOW)
    assert not retention.reaches("minute", NOW - timedelta(seconds=1))


def test_empty_window_keeps_the_finest_grain() -> None:
    assert finest(0) == "minute"


def finest(days: int, grain: str = "minute") -> str:
    """The finest grain for an hour so many days ago."""
    at = NOW - days * DAY
    return retention.finest(grain, at - HOUR / 2, at + HOUR / 2)

"""The past weeks behind a figure: enough of them, by a zone's clocks, and recomputed when batches add to them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import Q
from psycopg.sql import SQL

from pgqueue_admin.dialects import Connection
from pgqueue_admin.history.anomalies import findings, hourly_totals
from pgqueue_admin.history.rollups import baseline, queries
from pgqueue_admin.history.rollups.baseline import WEEKS, Baseline, BaselineSubject
from pgqueue_admin.history.rollups.histogram import value
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import Anomaly, BaselineBucket, HistoryBatch, HistorySource, Rollup
from pgqueue_admin.models.raw_sql import console_sql, rows_of
from tests.history.rollup_factory import rolled_up

pytestmark = pytest.mark.usefixtures("console_database")
HOUR, WEEK = timedelta(hours=1), timedelta(days=7)
LORD_HOWE = "Australia/Lord_Howe"  # where clocks change by half an hour
NOON = datetime(2026, 10, 21, 12, tzinfo=UTC)
SALES = BaselineSubject(endpoint="Sales")


def stepped(at: datetime, messages: int, grain: str = "hour", critical: list[int | None] | None = None) -> None:
    BaselineBucket.objects.create(grain=grain, at=at, messages=messages, failed=0, critical=critical, **SALES._asdict())


def messages(at: datetime, grain: str = "hour") -> Baseline | None:
    found = baseline.of_one(SALES, grain, [at], "critical")
    return found[int(at.timestamp())].messages if found else None


def finished(at: datetime, number: int, **changes: Any) -> None:
    rolled_up(
        at,
        number,
        grain="hour",
        endpoint="Sales",
        type="Bill",
        critical_buckets=[200],
        critical_counts=[number],
        **changes,
    )


def read_up_to(at: datetime) -> int:
    HistorySource.objects.update(watermark=at)
    return hourly_totals.see(at)


def told() -> list[tuple[str, datetime, datetime]]:
    return [(each.worst.kind, each.since, each.until) for each in findings.stretches(NOON - 9 * WEEK, NOON + WEEK, Q())]


def test_two_weeks_say_nothing_and_three_do() -> None:
    for week in (1, 2):
        stepped(NOON - week * WEEK, 100)
    assert messages(NOON) is None
    stepped(NOON - 3 * WEEK, 130)
    assert messages(NOON) == Baseline(100, 100, 130, 3)


@pytest.mark.parametrize(("busy", "weeks"), [(2, None), (3, 3)])
def test_shares_and_times_are_usual_after_three_weeks_that_have_any(busy: int, weeks: int | None) -> None:
    """A quiet week counts as none finished; without messages there is no share and no time."""
    timed = {"critical": [100, 200, None, 300]}
    for week in range(1, 6):
        finished_in_it = {"messages": 9, **timed} if week > 5 - busy else {"messages": 0}
        BaselineBucket.objects.create(
            grain="hour", at=NOON - week * WEEK, failed=0, **SALES._asdict(), **finished_in_it
        )
    known = baseline.of_one(SALES, "hour", [NOON], "critical")[int(NOON.timestamp())]
    assert (known.messages and known.messages.weeks) == 5
    cut = (known.half, known.nearly_all, known.all_but_one)
    assert [each and each.weeks for each in (known.failed, *cut)] == [weeks] * 4


def test_hours_that_a_version_before_saw_say_nothing_of_99_in_100() -> None:
    for week in range(1, 5):
        spans = [100, 200, None] if week > 2 else [100, 200, None, 300]
        stepped(NOON - week * WEEK, 9, critical=spans)
    known = baseline.of_one(SALES, "hour", [NOON], "critical")[int(NOON.timestamp())]
    assert (known.nearly_all and known.nearly_all.weeks, known.all_but_one) == (4, None)


def test_no_more_than_eight_weeks_count() -> None:
    for week in range(1, 12):
        stepped(NOON - week * WEEK, 10 * week)
    assert messages(NOON) == Baseline(20, 40, 60, 8)


def test_a_quiet_hour_is_a_zero_once_something_was_seen_at_all() -> None:
    stepped(NOON - 5 * WEEK - HOUR, 1)
    stepped(NOON - WEEK, 100)
    assert messages(NOON) == Baseline(0, 0, 0, 5)


def test_days_are_compared_with_days() -> None:
    midnight = NOON.replace(hour=0)
    for week in range(1, 5):
        stepped(midnight - week * WEEK, week, grain="day")
    assert messages(midnight, "day") == Baseline(1, 2, 3, 4)
    assert messages(midnight) is None


@pytest.mark.parametrize(("zone", "found"), [("UTC", 7), ("Europe/Berlin", 100)])
def test_a_change_of_the_clocks_moves_no_hour_of_the_week(settings: Any, zone: str, found: int) -> None:
    """On 25 October 2026 clocks in Berlin went back: eight in the morning was six in UTC, and is seven."""
    settings.PGQUEUE = {**settings.PGQUEUE, "BASELINE_TIME_ZONE": zone}
    seven = datetime(2026, 10, 28, 7, tzinfo=UTC)
    for week in range(1, 5):
        stepped(seven - week * WEEK - HOUR, 100)
        stepped(seven - week * WEEK, 7)
    usual = messages(seven)
    assert usual is not None
    assert usual.median == found


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", LORD_HOWE])
def test_hours_compared_with_a_changed_hour_are_judged_again(settings: Any, zone: str) -> None:
    """A late batch's change is queried by the earlier hour, the rest by the later hour: also where clocks change."""
    settings.PGQUEUE = {**settings.PGQUEUE, "BASELINE_TIME_ZONE": zone}
    for begin in (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 9, 27, tzinfo=UTC)):
        at = [begin + hour * HOUR for hour in range(40 * 24)]
        asked = {"at": at, "zone": zone, "weeks": WEEKS}
        query = SQL("{} select earlier, at from before").format(console_sql.baseline.weeks())
        compared = {(earlier, later) for earlier, later in rows_of(query, asked) if earlier >= begin}
        assert compared
        assert compared - {(hour, later) for hour in at for later in hourly_totals._later(hour)} == set()


def test_clocks_that_change_by_half_an_hour_leave_no_hour_without_weeks(settings: Any) -> None:
    """An hour is compared with the one that contains its start: otherwise all its weeks would be quiet."""
    settings.PGQUEUE = {**settings.PGQUEUE, "BASELINE_TIME_ZONE": LORD_HOWE}
    noon = datetime(2026, 10, 7, 1, tzinfo=UTC)  # local time, by clocks set forward on the fourth
    for week in range(1, 5):
        stepped(noon - week * WEEK, 100)
    assert messages(noon) == Baseline(100, 100, 100, 4)


def test_a_week_s_last_hour_is_compared_with_the_last_hour_of_weeks() -> None:
    last = datetime(2026, 10, 18, 23, tzinfo=UTC)  # a Sunday
    for week in range(1, 4):
        stepped(last - week * WEEK, 5)
        stepped(last - week * WEEK + HOUR, 900)
    assert messages(last) == Baseline(5, 5, 5, 3)


def test_late_batches_are_summed_and_their_hours_judged_again() -> None:
    """Also the hours compared with it, and those of recomputed days."""
    for week in range(1, 5):
        finished(NOON - week * WEEK, 100)
    assert read_up_to(NOON + 90 * timedelta(minutes=1)) == 4 * 168 + 1
    assert told() == [("silence", NOON, NOON + HOUR)]
    finished(NOON, 90)
    assert read_up_to(NOON + 91 * timedelta(minutes=1)) == 1
    assert told() == []
    assert read_up_to(NOON + 92 * timedelta(minutes=1)) == 0
    HistoryBatch.objects.filter(rollups__at=NOON).update(aggregated_at=None)
    assert read_up_to(NOON + 93 * timedelta(minutes=1)) == 1


def test_current_hour_is_not_judged_by_late_rows_of_weeks_before() -> None:
    """It has no sum yet and would be reported as silent."""
    for week in range(1, 5):
        finished(NOON - week * WEEK, 100)
    read_up_to(NOON + timedelta(minutes=30))
    finished(NOON - WEEK, 5)
    assert read_up_to(NOON + timedelta(minutes=31)) == 1
    assert told() == []


def test_concurrent_second_run_leaves_everything_due(console_database: str, connect: Callable[..., Connection]) -> None:
    finished(NOON, 100)
    first = connect(console_database)
    with first.raw.transaction():
        first.value(console_sql.baseline.alone())
        assert read_up_to(NOON + HOUR) == 0
        assert HistoryBatch.objects.filter(aggregated_at=None).count() == 1
    assert read_up_to(NOON + HOUR) == 1


def test_an_hour_whose_rollups_were_forgotten_stays_as_it_was_summed(settings: Any) -> None:
    finished(NOON, 100)
    read_up_to(NOON + HOUR)
    HistoryBatch.objects.update(aggregated_at=None)
    Rollup.objects.update(messages=1)
    settings.PGQUEUE = {**settings.PGQUEUE, "TRENDS_HOUR_RETENTION_DAYS": 30}
    HistorySource.objects.update(watermark=NOON + HOUR)
    assert hourly_totals.see(NOON + timedelta(days=31)) == 0
    assert BaselineBucket.objects.get(endpoint="Sales", type="Bill", grain="hour").messages == 100


def test_nothing_is_said_of_hours_that_are_not_read_to_their_end() -> None:
    for week in range(1, 5):
        finished(NOON - week * WEEK, 100)
    read_up_to(NOON + timedelta(minutes=59))
    assert told() == []
    HistorySource.objects.update(watermark=None)
    assert tasks.compare_hours() == 0


def test_a_day_is_summed_with_its_last_hour() -> None:
    """Also if history is complete up to midnight exactly: its hours are not due again, so neither is the day."""
    finished(NOON, 100)
    rolled_up(NOON.replace(hour=0), 100, grain="day", endpoint="Sales", type="Bill")
    midnight = NOON.replace(hour=0) + timedelta(days=1)
    read_up_to(midnight - HOUR)
    days = BaselineBucket.objects.filter(grain="day", endpoint="Sales", type="Bill")
    assert not days.exists()
    read_up_to(midnight)
    assert [day.messages for day in days] == [100]


def test_anomalies_are_forgotten_with_their_hours() -> None:
    finished(NOON, 100)
    about = {"kind": "slower", "endpoint": "Sales", "observed": 9, "median": 1, "low": 0, "high": 2, "weeks": 8}
    for at in (NOON - hourly_totals.KEPT_FOR["hour"], NOON - hourly_totals.KEPT_FOR["hour"] + HOUR):
        Anomaly.objects.create(at=at, **about)
    read_up_to(NOON + HOUR)
    assert [each.at for each in Anomaly.objects.all()] == [NOON - hourly_totals.KEPT_FOR["hour"] + HOUR]


def test_a_night_without_traffic_is_not_silent() -> None:
    for day in range(40):
        finished(NOON - timedelta(days=day), 100)
    read_up_to(NOON + HOUR)
    assert Anomaly.objects.count() == 0


def test_percentiles_are_those_of_the_charts() -> None:
    """Batches, results and types are merged by bucket before percentiles are taken."""
    rolled_up(
        NOON, 60, grain="hour", endpoint="Sales", type="Bill", critical_buckets=[100, 200], critical_counts=[50, 10]
    )
    rolled_up(
        NOON, 40, grain="hour", endpoint="Sales", type="Order", critical_buckets=[50, 300], critical_counts=[38, 2]
    )
    read_up_to(NOON + HOUR)
    step = BaselineBucket.objects.get(grain="hour", endpoint="Sales", type="")
    asked = queries.TrendQuery(NOON, NOON + HOUR, "hour", endpoint="Sales")
    (charted,) = (each.percentiles for each in queries.timings(asked, "critical").values())
    assert step.critical == [100, 200, 200, 300]
    assert [value(each) for each in (100, 200, 300)] == list(charted)

"""Hours and days with stored totals show what summing gives: for each name, also after later batches."""

import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections, transaction
from django.db.models import F

from pgqueue_admin.dialects import Connection
from pgqueue_admin.history import ledger
from pgqueue_admin.history.rollups import closed_periods, queries
from pgqueue_admin.history.rollups.histogram import value
from pgqueue_admin.history.rollups.queries import MEASURES, Timings
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import CountBucket, FailureBucket, HistoryBatch, HistorySource, LatencyBucket, Rollup
from pgqueue_admin.models.time_grains import STEPS
from tests.history import rollup_factory as made
from tests.history.rollup_factory import batch, failed, rolled_up, told
from tests.waiting import locks_waited_for, until

pytestmark = pytest.mark.usefixtures("console_database")
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
MONDAY = datetime(2026, 10, 19, tzinfo=UTC)
NAMES: list[dict[str, str]] = [
    {},
    {"queue": "q1"},
    {"queue": "none"},
    {"endpoint": "Sales"},
    {"type": "Bill"},
    {"endpoint": "Sales", "type": "Bill"},
]
KINDS = {"queue": ["q1", "q2"], "endpoint": ["Sales", "Billing"], "type": ["Bill", "Order"]}
RESULTS = ["success", "failed"]


def timed(measure: str = "critical", grain: str = "day", **names: str) -> dict[int, Timings]:
    return queries.timings(queries.TrendQuery(MONDAY, MONDAY + 3 * STEPS[grain], grain, **names), measure)


def figures(grain: str) -> list[Any]:
    """Counts for each name, failures, retried ones, and the lists of names."""
    step = STEPS[grain]
    whole = [queries.TrendQuery(MONDAY - step, MONDAY + 3 * step, grain, **names) for names in NAMES]
    each = [of(asked) for of in (queries.counts, queries.failures, queries.retried) for asked in whole]
    return [*each, queries.kinds(whole[0])]


def day(at: datetime, counts: dict[int, int], **changes: Any) -> Rollup:
    spans = {"critical_buckets": list(counts), "critical_counts": list(counts.values())}
    return rolled_up(at, sum(counts.values()), grain="day", **{**spans, **changes})


def anew(row: Rollup, counts: dict[int, int]) -> Rollup:
    """The same kind in another batch; unsaved."""
    row.pk, row.critical_buckets, row.critical_counts = None, list(counts), list(counts.values())
    row._state.adding = True
    return row


def watermark(at: datetime) -> int:
    HistorySource.objects.update(watermark=at)
    return tasks.cut_trends()


@pytest.mark.parametrize("grain", ["hour", "day"])
def test_closed_periods_equal_a_sum_of_rollups(grain: str) -> None:
    """Of batches, results, types and empty names; a step with only untimed failures is included."""
    chance, step = random.Random(7), STEPS[grain]
    for number in range(60):
        spans = {f"{name}_buckets": sorted(chance.sample(range(-1, 900), 9)) for name in MEASURES}
        spans |= {f"{name}_counts": [chance.randrange(1, 90) for _ in range(9)] for name in MEASURES}
        delivery = dict(zip(spans.pop("delivery_buckets"), spans.pop("delivery_counts"), strict=True))
        kind = {name: chance.choice(["", *values]) for name, values in KINDS.items()}
        at, result = MONDAY + number % 3 * step, chance.choice(RESULTS)
        rolled_up(at, 1, delivery, grain=grain, result=result, **spans, **kind)
        again = at + step - timedelta(microseconds=1 + number // 40)
        failed(at + number % 2 * (step - timedelta(minutes=1)), f"f{number % 7}", number, last_at=again, **kind)
        told(f"m{number % 50}", at, last_succeeded_at=again if number % 4 else None, **kind)
    rolled_up(MONDAY - step, 1, grain=grain, result="failed")
    summed, counted = [timed(measure, grain, **names) for measure in MEASURES for names in NAMES], figures(grain)
    assert watermark(MONDAY + 2 * step + step / 2) == 3
    assert watermark(MONDAY + 2 * step + step / 2) == 0
    assert [timed(measure, grain, **names) for measure in MEASURES for names in NAMES] == summed
    assert figures(grain) == counted
    assert (len(summed[0]), len(counted[0])) == (3, 4)
    assert not CountBucket.objects.filter(at=MONDAY + 2 * step).exists(), "it goes on"
    LatencyBucket.objects.all().update(p50=0)
    CountBucket.objects.all().update(failed=F("failed") + 1_000, retried=F("retried") + 1_000)
    FailureBucket.objects.filter(fingerprint="f6").update(messages=1_000_000)
    counts, failures, retried = figures(grain)[0 :: len(NAMES)][:3]
    assert sum(each.failed > 1_000 for each in counts.values()) == 3, "not read"
    assert failures[0].messages > 1_000_000, "not read"
    assert sum(each >= 1_000 for each in retried.values()) == 3, "not read"
    assert [each.percentiles.p50 for each in timed(grain=grain, queue="q1").values()].count(value(0)) == 2, "not read"


def test_nothing_is_cut_before_history_is_complete() -> None:
    day(MONDAY, {100: 1})
    HistorySource.objects.update(watermark=None)
    assert tasks.cut_trends() == 0
    assert watermark(MONDAY + DAY - timedelta(seconds=1)) == 0
    assert watermark(MONDAY + DAY) == 1


def test_rows_added_by_a_late_batch_are_shown_at_once() -> None:
    first = day(MONDAY, {100: 1}, endpoint="Sales")
    day(MONDAY + DAY, {100: 1}, endpoint="Sales")
    watermark(MONDAY + 2 * DAY)
    late = batch()
    HistoryBatch.objects.filter(pk=late.pk).update(state="planned")
    first.batch = late
    ledger.done(late, ledger.begin(late, "test"), 1, {}, [], [made.figures([anew(first, {300: 9})])])
    assert medians() == [300, 100]
    assert LatencyBucket.objects.filter(at=MONDAY + DAY).exists(), "of other days nothing changed"
    assert watermark(MONDAY + 2 * DAY) == 1
    assert medians() == [300, 100]


def test_a_day_that_is_made_anew_is_cut_anew_with_all_of_its_hours() -> None:
    """Hours of other days stay. A stale total would show the old count."""
    for hour in (*range(24), 24):
        rolled_up(MONDAY + hour * HOUR, 1, {100: 1}, grain="hour")
    day(MONDAY, {100: 1})
    assert watermark(MONDAY + 2 * DAY) == 26
    with transaction.atomic():
        closed_periods.alone()
        closed_periods.doubt_day(MONDAY)
    assert [cut.at for cut in CountBucket.objects.filter(queue="", endpoint="", type="")] == [MONDAY + DAY]
    assert watermark(MONDAY + 2 * DAY) == 25


def test_failures_that_a_driver_of_before_an_upgrade_left_count_once() -> None:
    """An older driver deletes the totals of a step it revises, but does not know failures by step."""
    day(MONDAY, {100: 1})
    failed(MONDAY, "f", 3)
    assert watermark(MONDAY + DAY) == 1
    CountBucket.objects.all().delete()
    asked = queries.TrendQuery(MONDAY, MONDAY + DAY, "day")
    assert [each.messages for each in queries.failures(asked)] == [3]
    assert watermark(MONDAY + DAY) == 1
    assert [each.messages for each in queries.failures(asked)] == [3]


def medians() -> list[int]:
    """Medians by bucket of the timed days; each of them has counts."""
    asked = queries.TrendQuery(MONDAY, MONDAY + 3 * DAY, "day", endpoint="Sales")
    assert set(queries.counts(asked)) == set(timed(endpoint="Sales"))
    buckets = {value(bucket): bucket for bucket in (100, 300)}
    return [buckets[each.percentiles.p50] for _, each in sorted(timed(endpoint="Sales").items())]


def test_closing_a_period_waits_for_a_committing_batch(
    console_database: str, connect: Callable[..., Connection]
) -> None:
    """Otherwise a day's total could be computed before the batch and stored after it."""
    day(MONDAY, {100: 1}, endpoint="Sales")
    HistorySource.objects.update(watermark=MONDAY + DAY)
    cutting = threading.Thread(target=_cut)
    with transaction.atomic():
        closed_periods.doubt(batch())
        day(MONDAY, {300: 9}, endpoint="Sales")
        cutting.start()
        looking = connect(console_database)
        until(lambda: locks_waited_for(looking) == 1)
    cutting.join(60)
    assert LatencyBucket.objects.filter(at=MONDAY).exists()
    assert medians() == [300]


def _cut() -> None:
    tasks.cut_trends()
    connections.close_all()


def slowest(**names: str) -> list[queries.SlowMessage]:
    asked = queries.TrendQuery(MONDAY, MONDAY + 3 * DAY, "day", **names)
    return queries.slowest(asked, MONDAY + 3 * DAY, timedelta(days=7), "critical")


def test_twenty_slowest_types_from_closed_periods_equal_a_sum() -> None:
    """An endpoint has no stored totals by type, so everything is summed. The last day is still open."""
    chance = random.Random(11)
    for number in range(40):
        for at in (MONDAY - 7 * DAY, MONDAY, MONDAY + DAY, MONDAY + 2 * DAY):
            counts = {each: chance.randrange(1, 90) for each in sorted(chance.sample(range(-1, 900), 9))}
            day(at, counts, type=f"Shop.T{number:02}", endpoint="Sales")
    day(MONDAY, {2000: 9}, endpoint="Sales")
    assert watermark(MONDAY + 2.5 * DAY) == 3
    found = slowest()
    assert (len(found), found) == (20, slowest(endpoint="Sales"))
    LatencyBucket.objects.filter(type=found[0].type, at=MONDAY).update(bands=[0], numbers=[10_000_000])
    without = slowest()
    assert without[:19] == found[1:], "what others took is not summed"


def test_whole_days_of_a_window_by_the_hour_are_read_as_days() -> None:
    """A day's buckets are those of its hours: a week needs seven times fewer rows."""
    for begin, bucket in ((MONDAY - 7 * DAY, 100), (MONDAY, 300)):
        for hour in range(-2, 26):
            rolled_up(
                begin + hour * HOUR,
                grain="hour",
                type="Shop.Bill",
                critical_buckets=[bucket + hour],
                critical_counts=[1],
            )
        day(begin, {bucket + hour: 1 for hour in range(24)}, type="Shop.Bill")
    asked = queries.TrendQuery(MONDAY - 2 * HOUR, MONDAY + 26 * HOUR, "hour")
    by_hours = [queries.SlowMessage("Shop.Bill", 28, value(311), value(324), value(124))]
    assert queries.slowest(asked, asked.until, 7 * DAY, "critical") == by_hours
    within = Rollup.objects.filter(grain="hour", at__gte=MONDAY, at__lt=MONDAY + DAY)
    assert within.update(critical_buckets=[900]) == 24
    assert queries.slowest(asked, asked.until, 7 * DAY, "critical") == by_hours, "not read"
    assert queries.slowest(asked, MONDAY + DAY - HOUR, 7 * DAY, "critical")[0].p95 == value(900), (
        "the day is not all in it"
    )


def test_last_day_of_a_name_comes_from_closed_and_open_days() -> None:
    day(MONDAY, {3: 1}, type="Bill", endpoint="Sales")
    day(MONDAY + DAY, {3: 1}, type="Order", endpoint="Sales")
    day(MONDAY + 2 * DAY, {3: 1}, type="Late")
    asked: tuple[dict[str, str], ...] = (
        {"type": "Bill"},
        {"type": "Order"},
        {"type": "Late"},
        {"type": "none"},
        {},
        {"endpoint": "Sales"},
    )
    lasts = [queries.last_day(names) for names in asked]
    assert lasts == [MONDAY, MONDAY + DAY, MONDAY + 2 * DAY, None, MONDAY + 2 * DAY, MONDAY + DAY]
    assert watermark(MONDAY + 2.5 * DAY) == 2
    assert [queries.last_day(names) for names in asked] == lasts
    assert queries.last_day({"type": "Bill", "endpoint": "Sales"}) == MONDAY
    Rollup.objects.filter(type="Bill").update(type="renamed")
    assert queries.last_day({"type": "Bill"}) == MONDAY, "figures that were counted are not looked through"

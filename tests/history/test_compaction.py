"""Batches' figures of hours and days are folded into one row per kind, without changing any answer. No Spark."""

import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections, transaction
from django.db.models import Count
from psycopg.sql import SQL

from pgqueue_admin.dialects import Connection
from pgqueue_admin.history.rollups import closed_periods, queries
from pgqueue_admin.history.rollups.queries import MEASURES
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import (
    BaselineBucket,
    CountBucket,
    HistoryBatch,
    HistorySource,
    LatencyBucket,
    Rollup,
    database_clock,
    raw_sql,
)
from pgqueue_admin.models.raw_sql import console_sql
from pgqueue_admin.models.time_grains import STEPS
from tests.history.rollup_factory import batch, rolled_up
from tests.waiting import locks_waited_for, until

pytestmark = pytest.mark.usefixtures("console_database")
MONDAY = datetime(2026, 10, 19, tzinfo=UTC)
KINDS = {"queue": ["", "q1"], "endpoint": ["Sales", "Billing"], "type": ["Bill", "Order"]}
KINDS |= {"result": ["success", "failed"], "exception": ["", "Refused"]}
ASKED: list[dict[str, str]] = [{}, {"endpoint": "Sales"}, {"queue": "q1"}, {"endpoint": "Billing", "type": "Bill"}]


def left_by_batches(number: int = 40) -> None:
    """Each batch leaves some kinds of three hours, days and minutes, timed or not."""
    chance = random.Random(11)
    for _ in range(number):
        whose = batch()
        for grain, step in STEPS.items():
            for _ in range(3):
                kind = {name: chance.choice(values) for name, values in KINDS.items()}
                at = MONDAY + chance.randrange(3) * step
                timings = {each: histogram(chance) for each in MEASURES}
                spans = {f"{each}_buckets": list(timings[each]) for each in MEASURES}
                spans |= {f"{each}_counts": list(timings[each].values()) for each in MEASURES}
                delivery = dict(zip(spans.pop("delivery_buckets"), spans.pop("delivery_counts"), strict=True))
                rolled_up(at, 5, delivery, grain=grain, batch=whose, skewed=chance.randrange(2), **spans, **kind)


def histogram(chance: random.Random) -> dict[int, int]:
    buckets = sorted(chance.sample(range(-1, 400), chance.choice([0, 1, 6])))
    return {bucket: chance.randrange(1, 90) for bucket in buckets}


def shown() -> list[Any]:
    """All queries of Trends, by grain."""
    found: list[Any] = []
    for grain, step in STEPS.items():
        for names in ASKED:
            window = queries.TrendQuery(MONDAY, MONDAY + 3 * step, grain, **names)
            found += [queries.counts(window), *(queries.timings(window, measure) for measure in MEASURES)]
        found.append(queries.kinds(queries.TrendQuery(MONDAY, MONDAY + 3 * step, grain)))
    return found


def seen_by_what_is_usual() -> None:
    HistoryBatch.objects.update(aggregated_at=database_clock.now())


def rows_a_kind() -> set[int]:
    """Rows of hours and days."""
    kinds = Rollup.objects.exclude(grain="minute").values("grain", "at", *KINDS)
    return {each["rows"] for each in kinds.annotate(rows=Count("pk"))}


def test_sums_stay_and_rows_go() -> None:
    left_by_batches()
    before, minutes = shown(), Rollup.objects.filter(grain="minute").count()
    seen_by_what_is_usual()
    tasks.fold_figures()
    assert shown() == before
    assert rows_a_kind() == {1}
    assert Rollup.objects.filter(grain="minute", batch__isnull=False).count() == minutes, "they are forgotten soon"
    assert closed_periods.fold() == 0


def test_later_batches_are_folded_into_the_same_rows() -> None:
    left_by_batches(10)
    seen_by_what_is_usual()
    tasks.fold_figures()
    left_by_batches(10)
    before = shown()
    seen_by_what_is_usual()
    tasks.fold_figures()
    assert shown() == before
    assert rows_a_kind() == {1}


def test_folding_keeps_closed_periods() -> None:
    left_by_batches(10)
    HistorySource.objects.update(watermark=MONDAY + timedelta(days=9))
    tasks.cut_trends()
    before, steps = shown(), (CountBucket.objects.count(), LatencyBucket.objects.count())
    seen_by_what_is_usual()
    tasks.fold_figures()
    assert (CountBucket.objects.count(), LatencyBucket.objects.count()) == steps
    assert tasks.cut_trends() == 0
    assert shown() == before


def test_a_batch_that_what_is_usual_has_not_seen_is_left_alone() -> None:
    """The baselines sum hours by batch: figures folded before would never reach them."""
    rolled_up(MONDAY, 3, grain="hour", endpoint="Sales", batch=batch(aggregated_at=database_clock.now()))
    late = rolled_up(MONDAY, 4, grain="hour", endpoint="Sales")
    tasks.fold_figures()
    assert list(Rollup.objects.values_list("batch", "messages").order_by("messages")) == [(None, 3), (late.batch_id, 4)]
    HistorySource.objects.update(watermark=MONDAY + timedelta(hours=1))
    tasks.compare_hours()
    assert BaselineBucket.objects.get(grain="hour", endpoint="Sales", type="").messages == 7
    tasks.fold_figures()
    assert list(Rollup.objects.values_list("batch", "messages")) == [(None, 7)]


def test_a_batch_a_minute_leaves_a_row_a_kind() -> None:
    """Folded now and then, during the day too."""
    for minute in range(60):
        rolled_up(MONDAY, 1, {minute: 1}, grain="day", batch=batch(aggregated_at=database_clock.now()))
        if minute % 20 == 19:
            tasks.fold_figures()
    (row,) = Rollup.objects.all()
    assert (row.messages, row.delivery_buckets, row.delivery_counts) == (60, list(range(60)), [1] * 60)


def test_folding_waits_for_a_recompute_of_the_day(console_database: str, connect: Callable[..., Connection]) -> None:
    """Otherwise deleted figures would return, merged."""
    rolled_up(MONDAY, 3, grain="day", batch=batch(aggregated_at=database_clock.now()))
    folding_now = threading.Thread(target=_fold)
    with transaction.atomic():
        closed_periods.alone()
        folding_now.start()
        looking = connect(console_database)
        until(lambda: locks_waited_for(looking) == 1)
        Rollup.objects.all().delete()
        rolled_up(MONDAY, 7, grain="day", batch=None)
    folding_now.join(60)
    assert [row.messages for row in Rollup.objects.all()] == [7]


def _fold() -> None:
    tasks.fold_figures()
    connections.close_all()


def test_the_steps_to_fold_are_found_by_their_index() -> None:
    """However long history is: folded rows and minutes are not read."""
    left_by_batches(3)
    seen_by_what_is_usual()
    raw_sql.run("analyze pgqueue_rollup, pgqueue_historybatch", {})
    with transaction.atomic():
        raw_sql.run("set local enable_seqscan = off", {})
        plan = raw_sql.rows_of(SQL("explain {}").format(console_sql.rollup_compaction.due()), {"most": 9})
    assert any("rollups_to_fold" in line for (line,) in plan), plan

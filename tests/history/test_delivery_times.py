"""Delivery times of rollups, merged in SQL, beside the queue's smallest TTBR: no Spark."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgqueue_admin.history.anomalies import ttbr_risk
from pgqueue_admin.history.anomalies.ttbr_risk import QueueWaits
from pgqueue_admin.history.rollups.histogram import RELATIVE_ERROR, bucket
from pgqueue_admin.models import Endpoint, ExpiredCount, MinimumTtbr, Queue, Rollup, database_clock
from tests.history import rollup_factory

pytestmark = pytest.mark.usefixtures("console_database", "one_day")


def rolled_up(endpoint: str, type: str, delivery: dict[int, int], **changes: Any) -> None:
    day = {"grain": "day", "at": database_clock.now().replace(hour=0), **changes}
    rollup_factory.rolled_up(delivery=delivery, endpoint=endpoint, type=type, **day)


@pytest.fixture
def hold() -> MinimumTtbr:
    Endpoint.objects.create(name="Warehouse", table="warehouse_in", peek_delay_ms=1_000)
    queue = Queue.objects.create(schema="public", table="warehouse_in", kind="input")
    about = {"ttbr_ms": 5_000, "last_seen_at": datetime(2026, 11, 1, tzinfo=UTC)}
    return MinimumTtbr.objects.create(queue=queue, message_type="Shop.Hold", **about)


SHARES = [0.5, 0.95, 0.99, 0.999]
Spans = st.lists(st.integers(1, 10**7), min_size=1, max_size=300)  # milliseconds of one batch
Week = st.lists(st.tuples(st.integers(0, 6), Spans), min_size=1, max_size=12)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(Week)
def test_a_week_merged_by_sql_has_the_percentiles_of_its_raw_spans(hold: MinimumTtbr, week: list[Any]) -> None:
    """p50 to p99.9 within one per cent of PostgreSQL's percentiles of all raw values."""
    Rollup.objects.all().delete()
    today = database_clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    for days_ago, spans in week:
        numbers = Counter(map(bucket, spans))
        rolled_up("Warehouse", "Shop.Hold", dict(numbers), at=today - timedelta(days=days_ago))
    ttbr_risk.measure_waits()
    hold.refresh_from_db()
    merged = QueueWaits(dict(zip(hold.delivery_buckets, hold.delivery_counts, strict=True)))
    assert [merged.within(share) for share in SHARES] == [
        pytest.approx(exact, rel=RELATIVE_ERROR + 1e-9)
        for exact in exactly([span for _, spans in week for span in spans])
    ]


def exactly(spans: list[int]) -> list[float]:
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "select percentile_disc(%s::float8[]) within group (order by span) from unnest(%s::int8[]) span",
            [SHARES, spans],
        )
        return list(cursor.fetchall()[0][0])


def test_batches_of_a_week_are_merged_by_bucket(hold: MinimumTtbr) -> None:
    rolled_up("Warehouse", "Shop.Hold", {300: 5, 310: 1})
    rolled_up("Warehouse", "Shop.Hold", {290: 2, 310: 7})
    for elsewhere in ("Archive", "Elsewhere", "Yard", "Zoo"):
        rolled_up(elsewhere, "Shop.Hold", {400: 9})
    rolled_up("Warehouse", "Shop.Other", {400: 9})
    rolled_up("Warehouse", "Shop.Hold", {400: 9}, grain="hour")
    today = database_clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    rolled_up("Warehouse", "Shop.Hold", {400: 9}, at=today - timedelta(days=7))  # the eighth day, counting today
    rolled_up("Warehouse", "Shop.Hold", {310: 0}, at=today - timedelta(days=6))
    ttbr_risk.measure_waits()
    hold.refresh_from_db()
    assert (hold.delivery_buckets, hold.delivery_counts, hold.expired) == ([290, 300, 310], [2, 5, 8], 0)


@pytest.mark.parametrize("names", [("Loader", "Yard"), ("Yard", "Loader"), ("Yard", "Zoo")])
def test_waits_of_all_endpoints_sharing_an_input_queue_count(hold: MinimumTtbr, names: tuple[str, str]) -> None:
    for name in names:
        Endpoint.objects.create(name=name, table="warehouse_in")
    Endpoint.objects.create(name="Elsewhere", schema="other", table="warehouse_in")
    rolled_up("Warehouse", "Shop.Hold", {300: 5, 310: 1})
    rolled_up(names[0], "Shop.Hold", {290: 2, 310: 7})
    rolled_up("Elsewhere", "Shop.Hold", {400: 9})
    ttbr_risk.measure_waits()
    hold.refresh_from_db()
    assert (hold.delivery_buckets, hold.delivery_counts) == ([290, 300, 310], [2, 5, 8])


def test_expired_messages_count_for_seven_days(hold: MinimumTtbr) -> None:
    today = database_clock.now().date()
    for days, number in ((0, 3), (6, 4), (7, 100)):
        about = {"queue": hold.queue, "message_type": "Shop.Hold", "day": today - timedelta(days=days)}
        ExpiredCount.objects.create(**about, number=number)
    ttbr_risk.measure_waits()
    hold.refresh_from_db()
    assert (hold.delivery_buckets, hold.expired) == ([], 7)


def test_waits_without_rollups_are_removed(hold: MinimumTtbr) -> None:
    rolled_up("Warehouse", "Shop.Hold", {300: 5})
    ttbr_risk.measure_waits()
    Rollup.objects.all().delete()
    ttbr_risk.measure_waits()
    hold.refresh_from_db()
    assert (hold.delivery_buckets, hold.delivery_counts) == ([], [])

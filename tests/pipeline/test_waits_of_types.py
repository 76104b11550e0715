"""Delivery times of rollups, merged in SQL, beside the smallest TTBR of the endpoint's queue: no Spark."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.pipeline import waits_of_types
from pgqueue_admin.records import clock
from pgqueue_admin.records.models import Endpoint, ExpiredCount, Queue, Rollup, SmallestTtbr
from tests.pipeline import counted

pytestmark = pytest.mark.usefixtures("console_database")


def rolled_up(endpoint: str, type: str, delivery: dict[int, int], **changes: Any) -> None:
    day = {"grain": "day", "at": clock.now().replace(hour=0), **changes}
    counted.rolled_up(delivery=delivery, endpoint=endpoint, type=type, **day)


@pytest.fixture
def hold() -> SmallestTtbr:
    Endpoint.objects.create(name="Warehouse", table="warehouse_in", peek_delay_ms=1_000)
    queue = Queue.objects.create(schema="public", table="warehouse_in", kind="input")
    about = {"ttbr_ms": 5_000, "seen_at": datetime(2026, 11, 1, tzinfo=UTC)}
    return SmallestTtbr.objects.create(queue=queue, message_type="Shop.Hold", **about)


def test_batches_of_a_week_are_merged_by_bucket(hold: SmallestTtbr) -> None:
    rolled_up("Warehouse", "Shop.Hold", {300: 5, 310: 1})
    rolled_up("Warehouse", "Shop.Hold", {290: 2, 310: 7})
    rolled_up("Elsewhere", "Shop.Hold", {400: 9})
    rolled_up("Warehouse", "Shop.Other", {400: 9})
    rolled_up("Warehouse", "Shop.Hold", {400: 9}, grain="hour")
    rolled_up("Warehouse", "Shop.Hold", {400: 9}, at=clock.now() - timedelta(days=9))
    waits_of_types.measure()
    hold.refresh_from_db()
    assert (hold.delivery, hold.delivery_n, hold.expired) == ([290, 300, 310], [2, 5, 8], 0)


def test_what_expired_is_counted_for_as_long(hold: SmallestTtbr) -> None:
    today = clock.now().date()
    for days, number in ((0, 3), (6, 4), (9, 100)):
        about = {"queue": hold.queue, "message_type": "Shop.Hold", "day": today - timedelta(days=days)}
        ExpiredCount.objects.create(**about, number=number)
    waits_of_types.measure()
    hold.refresh_from_db()
    assert (hold.delivery, hold.expired) == ([], 7)


def test_what_is_no_longer_seen_goes(hold: SmallestTtbr) -> None:
    rolled_up("Warehouse", "Shop.Hold", {300: 5})
    waits_of_types.measure()
    Rollup.objects.all().delete()
    waits_of_types.measure()
    hold.refresh_from_db()
    assert (hold.delivery, hold.delivery_n) == ([], [])

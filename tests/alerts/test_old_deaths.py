"""Failures that are days old when ingested are reported once as a pile: not one by one, and not silently."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from pgqueue_admin.alerts.dead_message_cursor import OLD_STOCK, DeadGroup, NewDeaths, OldDeaths
from pgqueue_admin.alerts.kinds import old_deaths
from pgqueue_admin.archive.ingester import ingest
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Alert, AlertMail, Cursor
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import wire_time
from tests.alerts.conftest import BILLING
from tests.alerts.reading import read
from tests.alerts.test_evaluation import Clock, clock

ERROR, CANONICAL = Address("public", "error"), '"public"."error"'
Connect = Callable[..., Connection]
pytestmark = pytest.mark.usefixtures("console_database")
__all__ = ["clock"]


def fail(connection: Connection, count: int, days_ago: float) -> None:
    """Put ``count`` failed messages of Billing, ``days_ago`` days old, into the error queue."""
    connection.run(postgresql().queue.create(table=ERROR))
    at = wire_time(datetime.now(UTC) - timedelta(days=days_ago))
    headers = json.dumps({h.FAILED_Q: "Billing", h.TIME_OF_FAILURE: at, h.EXCEPTION_TYPE: "Shop.Refused"})
    for _ in range(count):
        row = {"id": uuid4(), "headers": headers, "body": b"{}", "ttbr_ms": None}
        connection.run(postgresql().queue.send(table=ERROR), row)


def long_after_the_first_start() -> None:
    read()
    cursor = Cursor.objects.get()
    cursor.position |= {"began": (datetime.now(UTC) - OLD_STOCK).isoformat()}
    cursor.save()


def test_deaths_ingested_days_later_count_as_a_pile(console_database: str, connect: Connect) -> None:
    connection = connect(console_database)
    long_after_the_first_start()
    fail(connection, 3, days_ago=5)
    fail(connection, 1, days_ago=0)
    assert ingest(connection, ERROR).dead == 4
    reading = read()
    assert reading.error == ""
    assert [(died.count, died.old) for died in reading.deaths] == [(4, 3)]
    assert reading.piles == [OldDeaths(CANONICAL, 3)]
    assert read().piles == []


def taken_over(count: int, clock: Clock) -> dict[str, Any]:
    return {
        "deaths": [NewDeaths(BILLING, f"Shop.Cause{number}", count, clock.now, old=count) for number in range(3)],
        "lying": [DeadGroup(BILLING, f"Shop.Cause{number}", count, clock.now) for number in range(3)],
        "piles": [OldDeaths(CANONICAL, 3 * count)],
    }


def test_old_deaths_of_all_batches_and_causes_are_one_mail(clock: Clock) -> None:
    """285 deaths of three causes in three batches: the mail waits for all of them, and no single one is mailed."""
    mails = [clock.run_once(0.1, **taken_over(count, clock)) for count in (60, 30, 5)]
    assert mails == [[], [], []]
    lying = taken_over(95, clock)["lying"]
    since = f"{Alert.objects.get(kind='old_deaths').opened_at:%H:%M}"
    (subject,) = clock.run_once(1, lying=lying)
    assert subject.replace("\u00a0", " ") == f"[production] warning: error taken over 285 old deaths, since {since}"
    alert = Alert.objects.get(kind="old_deaths")
    assert alert.sentence.replace("\u00a0", " ") == "285 old deaths taken over from error"
    assert (alert.queue, alert.severity, alert.count) == (CANONICAL, "warning", 285)
    assert clock.run_once(60, lying=lying) == []
    assert AlertMail.objects.count() == 1


def test_old_deaths_resolve_without_mail_a_day_after_the_last(clock: Clock) -> None:
    clock.run_once(0, **taken_over(5, clock))
    lying = taken_over(5, clock)["lying"]
    assert clock.run_once(1, lying=lying) != []
    day = old_deaths.STAYS.total_seconds() / 60
    clock.run_once(day - 2, lying=lying)
    assert Alert.objects.get(kind="old_deaths").resolved_at is None
    assert clock.run_once(2, lying=lying) == []
    assert Alert.objects.get(kind="old_deaths").resolved_at == clock.now


def test_a_fresh_death_of_the_same_cause_is_mailed_at_once(clock: Clock) -> None:
    clock.run_once(0, **taken_over(5, clock))
    assert clock.run_once(
        0.1, deaths=[NewDeaths(BILLING, "Shop.Cause0", 1, clock.now)], lying=taken_over(5, clock)["lying"]
    )

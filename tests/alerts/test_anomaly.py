"""The warning of an unusual hour stays open until an hour is usual again."""

from datetime import UTC, datetime, timedelta

import pytest

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.models import Anomaly, Endpoint

pytestmark = pytest.mark.usefixtures("console_database")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def found(now: datetime) -> list[Finding]:
    endpoints = [Endpoint(name="Sales", schema="public", table="SalesQueue")]
    return list(BY_NAME["anomaly"].find(AlertSnapshot(now=now, watching_since=now, endpoints=endpoints)))


def failing(at: datetime) -> None:
    numbers = {"observed": 31, "messages": 90, "median": 1, "low": 0, "high": 10, "weeks": 8}
    Anomaly.objects.create(kind="failures", at=at, queue="", endpoint="Sales", type="Shop.Messages.Order", **numbers)


def test_anomaly_gives_observed_and_usual_figures_and_its_start() -> None:
    failing(NOON - HOUR)
    failing(NOON)
    (warned,) = found(NOON + HOUR + 5 * MINUTE)
    assert warned.said.fact == "Order: 31 of 90 failed in an hour, usual is 1, at most 10"
    assert warned.said.meaning.startswith("More failures, against the same hour of the week in 8 weeks before.")
    assert (warned.since, warned.queue) == (NOON - HOUR, '"public"."SalesQueue"')
    assert warned.identity == ("anomaly", '"public"."SalesQueue"', "failures Shop.Messages.Order")


def test_anomaly_resolves_once_the_next_hour_is_judged_usual() -> None:
    failing(NOON)
    assert len(found(NOON + 2 * HOUR + 10 * MINUTE)) == 1, "the next hour is over only now"
    assert found(NOON + 2 * HOUR + 15 * MINUTE) == []

"""A quarter with four incidents: each is found at its hours with its numbers, and nothing else is reported."""

import math
from collections.abc import Iterator
from datetime import datetime

import pytest
from django.db.models import Q

from pgqueue_admin.history.anomalies import findings, hourly_totals
from pgqueue_admin.history.anomalies.findings import AnomalyPeriod
from pgqueue_admin.models import Anomaly, BaselineBucket, HistorySource
from tests.databases import Databases
from tests.history import quarter_dataset
from tests.history.quarter_dataset import DEEP, FAILING, HOUR, SILENT, SINCE, SLOW, UNTIL, WEEK, depth, happened

BILL, CANCEL = ("Billing", "Shop.Bill"), ("Sales", "Shop.Cancel")


@pytest.fixture(scope="module")
def told(databases: Databases) -> Iterator[list[AnomalyPeriod]]:
    """All of it read at once, as when history is switched on after a quarter."""
    with databases.clone("console") as dsn, databases.as_django(dsn):
        quarter_dataset.write()
        hourly_totals.see(UNTIL)
        yield findings.stretches(SINCE, UNTIL, Q())


def test_each_incident_is_found_at_its_hours_and_nothing_else_is(told: list[AnomalyPeriod]) -> None:
    found = {(each.worst.kind, each.worst.endpoint, each.worst.type, each.since, each.until) for each in told}
    assert found == {
        ("slower", *BILL, *SLOW),
        ("failures", *CANCEL, *FAILING),
        ("silence", "Billing", "", *SILENT),
        ("growth", "Billing", "", *DEEP),
    }


@pytest.mark.usefixtures("console_database")
def test_dropped_audit_queue_causes_no_silence() -> None:
    """After its audit queue was dropped, finished messages are unknown. The hours before are known."""
    quarter_dataset.write()
    hourly_totals.see(UNTIL)
    hours = [SILENT.since - HOUR, SILENT.since, SILENT.since + HOUR]
    HistorySource.objects.create(table="empty", exists=False, watermark=SILENT.since)  # it was never read
    for gone_at, silent in ((SILENT.since + HOUR, [SILENT.since]), (SILENT.since - HOUR, []), (UNTIL, hours[1:])):
        HistorySource.objects.filter(table="audit").update(exists=False, watermark=gone_at)
        findings.judge_messages(hours)
        found = Anomaly.objects.filter(kind="silence", at__in=hours)
        assert sorted(found.values_list("at", flat=True)) == silent
    HistorySource.objects.filter(table="audit").update(watermark=min(SLOW.since, FAILING.since) - HOUR)
    findings.judge_messages([SLOW.since, FAILING.since])
    others = Anomaly.objects.filter(at__in=[SLOW.since, FAILING.since]).values_list("kind", flat=True)
    assert sorted(others) == ["failures", "slower"], "what finished all the same is judged"


@pytest.mark.usefixtures("console_database")
def test_of_silent_hours_the_one_in_which_most_is_missing_stands_for_all() -> None:
    about = {"kind": "silence", "endpoint": "Billing", "observed": 0, "messages": 0, "low": 5, "high": 900, "weeks": 8}
    for place, median in enumerate((100, 300, 200)):
        Anomaly.objects.create(at=SINCE + place * HOUR, median=median, **about)
    (stretch,) = findings.stretches(SINCE, UNTIL, Q())
    assert (stretch.worst.median, stretch.since, stretch.until) == (300, SINCE, SINCE + 3 * HOUR)


def weeks(at: datetime) -> list[datetime]:
    return [at - week * WEEK for week in range(1, 9)]


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """The 2nd, 4th and 6th of eight."""
    assert len(values) == 8
    return sorted(values)[1], sorted(values)[3], sorted(values)[5]


def slowest(at: datetime) -> float:
    """The 95th percentile of raw values."""
    spans = sorted(happened(at, *BILL).spans.elements())
    return spans[math.ceil(len(spans) * 0.95) - 1]


def worst(told: list[AnomalyPeriod], kind: str) -> AnomalyPeriod:
    (found,) = [each for each in told if each.worst.kind == kind]
    return found


def test_slower_with_its_numbers(told: list[AnomalyPeriod]) -> None:
    row = worst(told, "slower").worst
    lower, median, upper = quartiles([slowest(at) for at in weeks(row.at)])
    hour = happened(row.at, *BILL)
    assert (row.weeks, row.messages, row.timed) == (8, hour.messages, hour.spans.total())
    assert hour.failed, "of what failed nobody knows how long it took"
    assert row.observed == pytest.approx(slowest(row.at), rel=0.01)
    assert row.median == pytest.approx(median, rel=0.01)
    assert row.high == pytest.approx(max(upper + 3 * (upper - lower), median * 1.5), rel=0.08)  # of two within 1 %


def test_more_failures_with_their_numbers(told: list[AnomalyPeriod]) -> None:
    row = worst(told, "failures").worst
    lower, median, upper = quartiles([happened(at, *CANCEL).failed for at in weeks(row.at)])
    assert (row.observed, row.messages) == (happened(row.at, *CANCEL).failed, happened(row.at, *CANCEL).messages)
    assert (row.median, row.weeks) == (median, 8)
    assert row.high == max(upper + 3 * (upper - lower), median * 1.5, median + 4 * math.sqrt(median + 1))


def test_silence_with_its_numbers(told: list[AnomalyPeriod]) -> None:
    row = worst(told, "silence").worst
    lower, median, upper = quartiles([happened(at, *BILL).messages for at in weeks(row.at)])
    assert (row.observed, row.messages, row.median, row.weeks) == (0, 0, median, 8)
    assert row.low == min(lower - 3 * (upper - lower), median / 2, median - 4 * math.sqrt(median + 1)) > 0


def test_growth_with_its_numbers(told: list[AnomalyPeriod]) -> None:
    row = worst(told, "growth").worst
    lower, median, upper = quartiles([depth(at, "Billing") for at in weeks(row.at)])
    assert (row.observed, row.messages, row.median, row.weeks) == (500, None, median, 8)
    assert row.high == max(upper + 3 * (upper - lower), median * 1.5, median + 20)


def test_every_hour_is_summed_as_plain_counting_has_it(told: list[AnomalyPeriod]) -> None:
    at = SLOW.since
    for names in ({}, {"endpoint": "Sales"}, {"type": "Shop.Bill"}, {"endpoint": "Billing", "type": "Shop.Bill"}):
        step = BaselineBucket.objects.get(grain="hour", at=at, **{"queue": "", "endpoint": "", "type": "", **names})
        kinds = [kind for kind in quarter_dataset.KINDS if names.get("endpoint", kind[0]) == kind[0]]
        here = [happened(at, *kind) for kind in kinds if names.get("type", kind[1]) == kind[1]]
        assert step.messages == sum(hour.messages for hour in here)
        assert step.failed == sum(hour.failed for hour in here)
        assert step.timed == sum(hour.spans.total() for hour in here)
    assert BaselineBucket.objects.filter(grain="hour", queue="", endpoint="", type="").count() == 13 * 7 * 24
    assert HOUR * 24 * 7 == WEEK

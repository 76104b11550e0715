"""Retried messages are known by their headers, in new files and in older ones."""

from typing import Any

import pytest
from pyspark.sql import functions as F

from pgqueue_admin.history.spark.jobs.aggregation import figures
from pgqueue_admin.history.spark.transforms.columns import told_of_old
from pgqueue_admin.history.spark.transforms.history import history
from pgqueue_admin.history.spark.transforms.parse_headers import parsed
from pgqueue_admin.history.spark.transforms.retry_outcomes import retry_outcomes
from pgqueue_admin.history.spark.transforms.rollups import rollups
from pgqueue_admin.models import FailureRollup, RetryOutcome, Rollup
from tests.history.raw_rows import AUDITED, failed, raw

pytestmark = pytest.mark.spark

NAMES = ["NServiceBus.Retries", "ServiceControl.Retry.UniqueMessageId", "Pgqueue.RetriedFrom"]


@pytest.mark.parametrize("name", NAMES)
def test_retried_message_has_no_delivery_time(spark: Any, name: str) -> None:
    """Its sending was before its death or its delay; everything else is as for any message."""
    said = [AUDITED.replace("{", f'{{"{header}":"1",', 1) for header in (name, "Shop.RetriedFrom")]
    early = said[0].replace("12:00:00:000000", "12:00:01:600000")
    rows = [{"headers": text, "seq": place} for place, text in enumerate([*said, early])]
    retried, other, skewed = history(parsed(raw(spark, *rows)), "audit", 7).orderBy("seq").collect()
    assert (retried.critical_ms, retried.processing_ms, retried.delivery_ms, retried.skewed) == (1750, 250, None, False)
    assert other.delivery_ms == 1500
    assert (skewed.delivery_ms, skewed.skewed) == (None, True)
    (day,) = (
        row for row in rollups(history(parsed(raw(spark, *rows[:2])), "audit", 7)).collect() if row.grain == "day"
    )
    assert (day.messages, day.delivery_counts, day.critical_counts) == (2, [1], [2])


@pytest.mark.parametrize("name", NAMES)
def test_retried_message_has_a_story(spark: Any, name: str) -> None:
    said = AUDITED.replace("{", f'{{"{name}" : "1",', 1)
    (found,) = retry_outcomes(history(parsed(raw(spark, {"headers": said})), "audit", 7)).collect()
    assert (found.message_id, found.failed, found.succeeded) == ("m-1", 0, 1)


def test_message_discarded_while_waiting_is_in_no_figure(spark: Any) -> None:
    """A retried message deleted from its queue neither died again nor was handled."""
    said = AUDITED.replace("{", '{"NServiceBus.Retries":"1",', 1)
    rows = [{"headers": said, "seq": 1, **failed(None, None)}, {"headers": said, "seq": 2}]
    kept = history(parsed(raw(spark, rows[0] | {"result": "discarded"}, rows[1])), "archive", 7)
    assert kept.count() == 2
    told = {made.model: made.table.to_pylist() for made in figures(kept)}
    assert [(row["grain"], row["result"], row["messages"]) for row in told[Rollup] if row["grain"] == "day"] == [
        ("day", "success", 1)
    ]
    assert told[FailureRollup] == []
    assert [(row["failed"], row["succeeded"]) for row in told[RetryOutcome]] == [(0, 1)]


def test_older_files_tell_it_by_their_headers(spark: Any) -> None:
    """They lack that column, which Spark reads as null."""
    said = [AUDITED.replace("{", f'{{"{name}" : "1",', 1) for name in (*NAMES, "Shop.RetriedFrom")]
    rows = [{"headers": text, "message_id": str(place)} for place, text in enumerate(said)]
    now = history(parsed(raw(spark, *rows)), "audit", 7)
    old = now.withColumn("retried", F.lit(None).cast("boolean"))
    assert retry_outcomes(old).count() == 0
    assert sorted(retry_outcomes(told_of_old(old)).collect()) == sorted(retry_outcomes(now).collect())
    assert {story.message_id for story in retry_outcomes(now).collect()} == {"0", "1", "2"}


def test_an_event_has_a_part_of_each_endpoint_that_received_it(spark: Any) -> None:
    """All parts have one id: failure or success at one endpoint is no figure of another."""
    said = AUDITED.replace("{", '{"NServiceBus.Retries":"1",', 1)
    succeeded = [{"headers": said.replace("Sales", name), "seq": place} for place, name in enumerate(("Sales", "Mail"))]
    died = {"headers": AUDITED, "endpoint": "Billing", "seq": 3, "result": "failed", **failed("x", "")}
    found = retry_outcomes(history(parsed(raw(spark, *succeeded, died)), "audit", 7)).collect()
    assert {(part.message_id, part.endpoint, part.failed, part.succeeded) for part in found} == {
        ("m-1", "Sales", 0, 1),
        ("m-1", "Mail", 0, 1),
        ("m-1", "Billing", 1, 0),
    }

"""Each step on rows written out: what goes in, what comes out."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import Row

from pgqueue_admin.pipeline.histogram import bucket
from pgqueue_admin.pipeline.schemas import RAW
from pgqueue_admin.pipeline.transforms.fingerprints import fingerprinted
from pgqueue_admin.pipeline.transforms.history import history, rejected
from pgqueue_admin.pipeline.transforms.parsed import parsed
from pgqueue_admin.pipeline.transforms.rollups import rollups

pytestmark = pytest.mark.spark

AUDITED = (
    '{"NServiceBus.MessageId":"m-1","NServiceBus.ConversationId":"c-1","NServiceBus.ProcessingEndpoint":"Sales",'
    '"NServiceBus.EnclosedMessageTypes":"Shop.PlaceOrder, Shop, Version=1.0.0.0;Shop.IOrder, Shop",'
    '"NServiceBus.TimeSent":"2026-11-14 12:00:00:000000 Z",'
    '"NServiceBus.ProcessingStarted":"2026-11-14 12:00:01:500000 Z",'
    '"NServiceBus.ProcessingEnded":"2026-11-14 12:00:01:750400 Z"}'
)
ENDED = datetime(2026, 11, 14, 12, 0, 1, 750400, tzinfo=UTC)


def raw(spark: Any, *rows: dict[str, Any]) -> Any:
    blank = dict.fromkeys(RAW.fieldNames())
    return spark.createDataFrame([Row(**{**blank, "result": "success", "seq": 1, **row}) for row in rows], RAW)


def utc(moment: datetime) -> datetime:
    """Spark gives times without a zone, in the zone of this process."""
    return moment.astimezone(UTC)


def test_headers_become_columns(spark: Any) -> None:
    (row,) = history(parsed(raw(spark, {"headers": AUDITED})), "audit").collect()
    assert (row.message_id, row.conversation_id, row.endpoint, row.type) == ("m-1", "c-1", "Sales", "Shop.PlaceOrder")
    assert (row.critical_ms, row.processing_ms, row.delivery_ms, row.skewed) == (1750, 250, 1500, False)
    assert utc(row.ended_at) == ENDED
    assert (str(row.day), row.source, row.headers) == ("2026-11-14", "audit", AUDITED)


def test_columns_win_over_headers(spark: Any) -> None:
    (row,) = parsed(raw(spark, {"headers": AUDITED, "message_id": "own", "message_type": "Own"})).collect()
    assert (row.message_id, row.type) == ("own", "Own")


def test_what_cannot_be_kept_says_why(spark: Any) -> None:
    rows = [
        {"headers": text} for text in ("{", "[1", "{}", None, '{"NServiceBus.ProcessingEnded":"yesterday"}', AUDITED)
    ]
    messages = parsed(raw(spark, *rows))
    assert {row.reason: row["count"] for row in rejected(messages).collect()} == {
        "its headers are not JSON": 2,
        "nothing says when it ended": 3,
    }
    assert history(messages, "audit").count() == 1


def test_clocks_that_disagree_are_counted_and_not_timed(spark: Any) -> None:
    early = AUDITED.replace("12:00:00:000000", "12:00:09:000000")
    (row,) = history(parsed(raw(spark, {"headers": early})), "audit").collect()
    assert (row.critical_ms, row.delivery_ms, row.processing_ms, row.skewed) == (None, None, 250, True)


def test_a_delayed_message_waits_from_when_it_was_due(spark: Any) -> None:
    due = AUDITED.replace("{", '{"NServiceBus.DeliverAt":"2026-11-14 12:00:01:000000 Z",', 1)
    (row,) = history(parsed(raw(spark, {"headers": due})), "audit").collect()
    assert (row.critical_ms, row.delivery_ms) == (750, 500)


def test_one_failure_has_one_fingerprint(spark: Any) -> None:
    trace = "   at System.Linq.First()\n   at Shop.Gateway.Charge(Card c) in G.cs:line {}\n   at NServiceBus.X()"
    rows = [
        failed("Card 'a' of order 1 refused", trace.format(7)),
        failed("Card 'b' of order 22 refused", trace.format(9)),
        failed("Card 'a' of order 1 refused", "   at Other.Place()"),
    ]
    first, second, third = (row.fingerprint for row in fingerprinted(raw(spark, *rows)).collect())
    assert first == second != third
    assert len(first) == 16


def failed(message: str, trace: str) -> dict[str, Any]:
    return {"exception_type": "Refused", "exception_message": message, "stack_trace": trace}


def test_a_python_failure_is_told_by_its_last_own_frame(spark: Any) -> None:
    trace = 'Traceback (most recent call last):\n  File "/app/shop.py", line {}, in charge\n    boom()\nValueError: x'
    rows = [failed("x", trace.format(number)) for number in (1, 2)]
    first, second = (row.fingerprint for row in fingerprinted(raw(spark, *rows)).collect())
    assert first == second


def test_rollups_count_by_minute_hour_and_day(spark: Any) -> None:
    later = AUDITED.replace("12:00:", "12:07:")
    rows = [{"headers": AUDITED, "seq": 1}, {"headers": AUDITED, "seq": 2}, {"headers": later, "seq": 3}]
    found = rollups(history(parsed(raw(spark, *rows)), "audit")).collect()
    counted = sorted((row.grain, utc(row.at).strftime("%H:%M"), row.messages) for row in found)
    assert counted == [("day", "00:00", 3), ("hour", "12:00", 3), ("minute", "12:00", 2), ("minute", "12:07", 1)]
    day = next(row for row in found if row.grain == "day")
    assert (day.queue, day.endpoint, day.type, day.exception) == ("", "Sales", "Shop.PlaceOrder", "")
    assert (day.critical, day.critical_n) == ([bucket(1750)], [3])


def test_rollups_of_nothing_measured_have_empty_histograms(spark: Any) -> None:
    died = {"ended_at": ENDED, "result": "failed", "exception_type": "Refused"}
    for row in rollups(history(parsed(raw(spark, died)), "archive")).collect():
        assert (row.messages, row.critical, row.critical_n, row.exception) == (1, [], [], "Refused")

"""Each step on rows written out: input and output."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame

from pgqueue_admin.history.rollups.histogram import bucket
from pgqueue_admin.history.rollups.name_limits import counted
from pgqueue_admin.history.sources.size_limits import BODY_MOST, HEADERS_MOST
from pgqueue_admin.history.spark.transforms import parse_headers
from pgqueue_admin.history.spark.transforms.failures import failures
from pgqueue_admin.history.spark.transforms.history import history, reasons, rejected
from pgqueue_admin.history.spark.transforms.parse_headers import parsed
from pgqueue_admin.history.spark.transforms.retry_outcomes import retry_outcomes
from pgqueue_admin.history.spark.transforms.rollups import _bucket as bucket_of
from pgqueue_admin.history.spark.transforms.rollups import rollups
from tests.history.raw_rows import AUDITED, ENDED, failed, raw

pytestmark = pytest.mark.spark


def utc(moment: datetime) -> datetime:
    """Spark returns times without a zone, in this process's zone."""
    return moment.astimezone(UTC)


def test_headers_become_columns(spark: Any) -> None:
    (row,) = history(parsed(raw(spark, {"headers": AUDITED})), "audit", 7).collect()
    assert (row.message_id, row.conversation_id, row.endpoint, row.type) == ("m-1", "c-1", "Sales", "Shop.PlaceOrder")
    assert (row.critical_ms, row.processing_ms, row.delivery_ms, row.skewed) == (1750, 250, 1500, False)
    assert utc(row.ended_at) == ENDED
    assert (str(row.day), row.source, row.headers) == ("2026-11-14", "audit", AUDITED)


def test_columns_win_over_headers(spark: Any) -> None:
    (row,) = parsed(raw(spark, {"headers": AUDITED, "message_id": "own", "message_type": "Own"})).collect()
    assert (row.message_id, row.type) == ("own", "Own")


WHY_NOT: dict[str, list[dict[str, Any]]] = {
    parse_headers.NO_OBJECT: [
        {"headers": text} for text in ("{", "[1", '[{"NServiceBus.MessageId":"m"}]', '"text"', "null", "")
    ],
    parse_headers.NO_END: [{"headers": "{}"}, {"headers": None}],
    parse_headers.UNREADABLE_END: [
        {"headers": '{"NServiceBus.ProcessingEnded":"yesterday"}'},
        *(
            {"headers": f'{{"NServiceBus.ProcessingEnded":"{text}"}}'}
            for text in (
                *(f"2026-11-14 12:00:01:{odd}" for odd in ("750+02 Z", "+0750")),
                *("2026-11-14T12:00:01.750+02:30", "2026-11-14T12:00:01.750000+02:00"),
                *("12:00:01", "  12:00:01:750000 Z", "2026-11-14", "2026-11-14 12:00"),
            )
        ),
        {"headers": AUDITED.replace("2026-11-14 12:00:01:75", "0001-01-01 12:00:01:75")},
        {"headers": "{}", "ended_at": datetime(2999, 1, 1, tzinfo=UTC)},
    ],
    parse_headers.HEADERS_TOO_LARGE: [{"headers": None, "headers_bytes": HEADERS_MOST + 1}],
    parse_headers.HEADERS_WITHHELD: [{"headers": None, "headers_bytes": HEADERS_MOST}],
    parse_headers.body_too_large(BODY_MOST): [{"headers": AUDITED, "body_bytes": BODY_MOST + 1}],
    parse_headers.TWIN: [{"headers": AUDITED, "is_twin": True}],
}


def test_rejected_row_has_its_reason(spark: Any) -> None:
    fine = {"headers": AUDITED, "headers_bytes": HEADERS_MOST, "body_bytes": BODY_MOST}
    spaced = {**fine, "headers": f"\n {AUDITED}"}
    rows = [{"queue": reason, **row} for reason, each in WHY_NOT.items() for row in each]
    messages = parsed(raw(spark, fine, spaced, *rows))
    found = rejected(messages, "audit")
    assert [row for row in found.collect() if row.reason != row.queue] == []
    assert reasons(found) == {reason: len(each) for reason, each in WHY_NOT.items()}
    assert history(messages, "audit", 7).count() == 2


def test_rejected_row_keeps_its_source_and_seq(spark: Any) -> None:
    broken = {"seq": 7, "queue": "q", "headers": "[" * 5000, "headers_bytes": 5000, "body_bytes": 3}
    (row,) = rejected(parsed(raw(spark, broken)), "audit").collect()
    assert row.asDict() == {
        "source": "audit", "seq": 7, "queue": "q", "reason": parse_headers.NO_OBJECT, "headers": "[" * 4096,
        "headers_bytes": 5000, "body_bytes": 3,
    }  # fmt: skip


def test_times_that_nobody_meant_are_none(spark: Any) -> None:
    odd = {
        "headers": AUDITED.replace("2026-11-14 12:00:00", "0001-01-01 00:00:00"),
        "sent_at": datetime(9999, 1, 1, tzinfo=UTC),
    }
    (row,) = history(parsed(raw(spark, odd)), "audit", 7).collect()
    assert (row.sent_at, row.critical_ms, row.processing_ms, row.skewed) == (None, None, 250, False)


def test_names_are_such_as_a_database_can_hold(spark: Any) -> None:
    """No NUL anywhere, and in figures no more than an index accepts."""
    said = AUDITED.replace("Sales", "Sa\\u0000les" + "s" * 5000).replace("m-1", "m\\u0000")
    kept = history(parsed(raw(spark, {"headers": said})), "audit", 7)
    assert kept.collect()[0].message_id == "m"
    assert {row.endpoint for row in rollups(kept).collect()} == {"Sales" + "s" * 195}
    names = ["s" * 800, "\N{CJK UNIFIED IDEOGRAPH-20000}" * 400]
    rows = [{"headers": AUDITED.replace("Sales", name)} for name in names]
    found = {row.endpoint for row in rollups(history(parsed(raw(spark, *rows)), "audit", 7)).collect()}
    assert found == {names[0], names[1][:200]} == set(map(counted, names))
    assert max(len(name.encode()) for name in found) == 800


def test_an_error_that_opens_quotes_and_closes_none_keeps_nobody_waiting(spark: Any) -> None:
    """Each open quote would scan the rest: hours for a megabyte."""
    message = "Refused: " + "\N{LEFT DOUBLE QUOTATION MARK}" * 1_000_000
    (row,) = failures(
        history(parsed(raw(spark, {"headers": AUDITED, **failed(message, message)})), "audit", 7)
    ).collect()
    assert row.message == message[:200]


def test_generic_types_keep_their_brackets(spark: Any) -> None:
    inner = "Shop.Pair`2[[Shop.A, Shop],[Shop.B`1[[System.Int32, mscorlib]], Shop]]"
    said = AUDITED.replace("Shop.PlaceOrder, Shop, Version", f"{inner}, Shop, Version")
    (row,) = parsed(raw(spark, {"headers": said})).collect()
    assert row.type == inner


def test_clocks_that_disagree_are_counted_and_not_timed(spark: Any) -> None:
    early = AUDITED.replace("12:00:00:000000", "12:00:09:000000")
    (row,) = history(parsed(raw(spark, {"headers": early})), "audit", 7).collect()
    assert (row.critical_ms, row.delivery_ms, row.processing_ms, row.skewed) == (None, None, 250, True)


def test_a_delayed_message_waits_from_when_it_was_due(spark: Any) -> None:
    due = AUDITED.replace("{", '{"NServiceBus.DeliverAt":"2026-11-14 12:00:01:000000 Z",', 1)
    (row,) = history(parsed(raw(spark, {"headers": due})), "audit", 7).collect()
    assert (row.critical_ms, row.delivery_ms) == (750, 500)


def test_message_due_before_it_was_sent_waits_from_its_sending(spark: Any) -> None:
    """An overdue timeout, or a forwarded message: it could not wait before it existed."""
    due = AUDITED.replace("{", '{"NServiceBus.DeliverAt":"2026-11-14 11:00:00:000000 Z",', 1)
    (row,) = history(parsed(raw(spark, {"headers": due})), "audit", 7).collect()
    assert (row.critical_ms, row.delivery_ms, row.skewed) == (1750, 1500, False)


def test_rollups_count_by_minute_hour_and_day(spark: Any) -> None:
    later = AUDITED.replace("12:00:", "12:07:")
    rows = [{"headers": AUDITED, "seq": 1}, {"headers": AUDITED, "seq": 2}, {"headers": later, "seq": 3}]
    found = rollups(history(parsed(raw(spark, *rows)), "audit", 7)).collect()
    counted = sorted((row.grain, utc(row.at).strftime("%H:%M"), row.messages) for row in found)
    assert counted == [("day", "00:00", 3), ("hour", "12:00", 3), ("minute", "12:00", 2), ("minute", "12:07", 1)]
    day = next(row for row in found if row.grain == "day")
    assert (day.queue, day.endpoint, day.type, day.exception) == ("", "Sales", "Shop.PlaceOrder", "")
    assert (day.critical_buckets, day.critical_counts) == ([bucket(1750)], [3])


def test_rollups_of_nothing_measured_have_empty_histograms(spark: Any) -> None:
    died = {"ended_at": ENDED, "result": "failed", "exception_type": "Refused"}
    for row in rollups(history(parsed(raw(spark, died)), "archive", 7)).collect():
        assert (row.messages, row.critical_buckets, row.critical_counts, row.exception) == (1, [], [], "Refused")


def test_failures_are_counted_by_minute_and_fingerprint(spark: Any) -> None:
    rows = [
        {"ended_at": ENDED + timedelta(seconds=seconds), "result": "failed", **failed(f"Card {seconds} refused", "")}
        for seconds in (0, 30, 90)
    ]
    found = failures(history(parsed(raw(spark, *rows)), "archive", 7)).orderBy("at").collect()
    assert [(f"{utc(row.at):%H:%M:%S}", row.messages, row.exception, row.message) for row in found] == [
        ("12:00:00", 2, "Refused", "Card <n> refused"),
        ("12:01:00", 1, "Refused", "Card <n> refused"),
    ]
    assert len({row.fingerprint for row in found}) == 1
    assert (utc(found[0].first_at), utc(found[0].last_at)) == (ENDED, ENDED + timedelta(seconds=30))


def test_batches_share_the_code_that_spark_writes(spark: Any) -> None:
    """Different code is compiled again, and is slow for its first seconds."""
    first, second = (code(history(parsed(raw(spark, {})), "archive", batch)) for batch in (7777, 8888))
    assert first == second
    assert "GeneratedIterator" in first


def code(frame: DataFrame) -> str:
    found = frame._jdf.queryExecution().debug().codegenToSeq()
    return "".join(found.apply(place)._2() for place in range(found.size()))


def test_story_has_a_part_for_each_minute(spark: Any) -> None:
    """Any window then has its part, and one day's figures can be recomputed from its own files."""
    died = {"result": "failed", "message_id": "a", "endpoint": "Sales", **failed("x", "")}
    last = ENDED.replace(second=59)
    rows = [
        {**died, "seq": place, "ended_at": at} for place, at in enumerate((ENDED, last, last + timedelta(seconds=1)))
    ]
    parts = retry_outcomes(history(parsed(raw(spark, *rows)), "archive", 7)).orderBy("first_at").collect()
    assert [(each.message_id, each.failed, utc(each.last_failed_at)) for each in parts] == [
        ("a", 2, last),
        ("a", 1, last + timedelta(seconds=1)),
    ]
    assert "minute" not in parts[0]


def test_story_has_a_part_for_each_queue_and_type(spark: Any) -> None:
    """A query for one queue or type finds its failures, whatever else happened to the message."""
    died = {"result": "failed", "message_id": "a", "endpoint": "Sales", "ended_at": ENDED, **failed("x", "")}
    rows = [{**died, "queue": name, "message_type": kind} for name, kind in (("q", "A"), ("r", "A"), ("r", "B"))]
    rows = [{**row, "seq": place} for place, row in enumerate([*rows, rows[0]])]
    parts = retry_outcomes(history(parsed(raw(spark, *rows)), "archive", 7)).orderBy("queue", "type").collect()
    assert [(each.queue, each.type, each.failed) for each in parts] == [("q", "A", 2), ("r", "A", 1), ("r", "B", 1)]


def test_a_masked_id_is_no_id(spark: Any) -> None:
    """Otherwise all messages would be one, with one story."""
    said = '{"NServiceBus.MessageId":"(masked)","NServiceBus.ConversationId":"(masked)","NServiceBus.Retries":"1"}'
    rows = [{"seq": place, "headers": said, "ended_at": ENDED, "result": "failed"} for place in (1, 2)]
    told = parsed(raw(spark, *rows))
    assert {(row.message_id, row.conversation_id) for row in told.collect()} == {(None, None)}
    assert retry_outcomes(history(told, "archive", 7)).count() == 0


def test_a_message_has_one_story(spark: Any) -> None:
    """Its parts: failed twice, then succeeded; succeeded as a retry of another part's failure. At once: no story."""
    died = {"result": "failed", "message_id": "a", "queue": "q", "endpoint": "Sales", **failed("x", "")}
    retried = '{"Pgqueue.RetriedFrom":"4","NServiceBus.ProcessingEnded":"2026-11-14 12:09:00:000000 Z"}'
    rows = [
        {**died, "ended_at": ENDED},
        {**died, "ended_at": ENDED + timedelta(minutes=1)},
        {"message_id": "a", "endpoint": "Sales", "headers": retried},
        {"message_id": "b", "headers": retried},
        {"message_id": "c", "headers": AUDITED},
    ]
    rows = [{**row, "seq": place} for place, row in enumerate(rows)]
    *died_twice, succeeded, other = (
        retry_outcomes(history(parsed(raw(spark, *rows)), "archive", 7)).orderBy("message_id", "first_at").collect()
    )
    for minute, part in enumerate(died_twice):
        told = (part.message_id, part.failed, part.succeeded, part.queue, part.exception)
        assert told == ("a", 1, 0, "q", "Refused")
        assert utc(part.first_at) == utc(part.last_failed_at) == ENDED + timedelta(minutes=minute)
    assert (succeeded.message_id, succeeded.failed, succeeded.succeeded, succeeded.queue) == ("a", 0, 1, "")
    assert utc(succeeded.last_succeeded_at) == datetime(2026, 11, 14, 12, 9, tzinfo=UTC)
    assert (other.message_id, other.failed, other.succeeded, other.last_failed_at) == ("b", 0, 1, None)


def test_second_batch_calls_java_fewer_than_600_times(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is a round trip to another process, and the first batch has made most of them."""
    asked, frame, ways = list[str](), raw(spark, {"headers": AUDITED}), spark.sparkContext._gateway._gateway_client
    ask = ways.send_command

    def counted_in(told: str, **more: Any) -> Any:
        asked.append(told)
        return ask(told, **more)

    monkeypatch.setattr(ways, "send_command", counted_in)
    for _ in range(2):
        asked.clear()
        history(parsed(frame), "audit", 7)
    assert len(asked) < 600, len(asked)


def test_a_span_falls_into_the_bucket_that_pages_read_it_from(spark: Any) -> None:
    """Java counts, Python reads: a bucket off by one is a percentile off by two per cent."""
    spans = [-1, 0, *range(1, 3000), *(10**power + more for power in range(4, 13) for more in (-1, 0, 1))]
    counted_by_spark = spark.createDataFrame([(span,) for span in spans], "ms long").select(
        bucket_of("ms").alias("number")
    )
    assert [row.number for row in counted_by_spark.collect()] == [bucket(span) for span in spans]

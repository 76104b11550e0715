"""28-character times and .NET spans (wire sheet 7.1)."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.transport.wire.wire_times import parse_time, parse_timespan, wire_time, wire_timespan


def test_a_time_is_28_characters_in_utc():
    berlin = timezone(timedelta(hours=1))
    assert wire_time(datetime(2026, 11, 14, 13, 26, 51, 355787, berlin)) == "2026-11-14 12:26:51:355787 Z"


@given(st.datetimes(timezones=st.just(UTC)))
def test_any_time_comes_back(instant):
    assert len(wire_time(instant)) == 28
    assert parse_time(wire_time(instant)) == instant


def test_separators_are_not_checked():
    assert parse_time("2026/11/14T12.26.51,355787+0") == datetime(2026, 11, 14, 12, 26, 51, 355787, UTC)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "2026-11-20T10:00:00Z",
        "2026-13-14 12:26:51:355787 Z",
        "2026-11-14 12:26:51:355787 Z ",
        "٢٠٢٦-11-14 12:26:51:355787 Z",
        "0000-01-01 00:00:00:000000 Z",
    ],
)
def test_not_a_time(text):
    assert parse_time(text) is None


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("00:00:20", timedelta(seconds=20)),
        ("20.00:00:00", timedelta(days=20)),
        ("1.02:03:04.5000000", timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
        ("-00:01:00", timedelta(minutes=-1)),
        ("-1.00:00:00", timedelta(days=-1)),
    ],
)
def test_spans(text, span):
    assert parse_timespan(text) == span
    assert wire_timespan(span) == text


@pytest.mark.parametrize(
    ("text", "span"),
    [
        (" 00:00:20\n", timedelta(seconds=20)),
        ("1:2:3", timedelta(hours=1, minutes=2, seconds=3)),
        ("00:00:00.5", timedelta(milliseconds=500)),
        ("00:00:00.0000019", timedelta(microseconds=1)),
        ("10675199.02:48:05.4775807", timedelta(10_675_199, 10_085, 477_580)),  # the longest that .NET has
    ],
)
def test_spans_that_others_may_write(text, span):
    assert parse_timespan(text) == span


@given(st.timedeltas(timedelta(days=-10_000_000), timedelta(days=10_000_000)))
def test_any_span_comes_back(span):
    assert parse_timespan(wire_timespan(span)) == span


@pytest.mark.parametrize(
    "text", [None, "", "20", "24:00:00", "00:60:00", "00:00:60", "a.00:00:00", "00:00:00.12345678"]
)
def test_not_a_span(text):
    assert parse_timespan(text) is None

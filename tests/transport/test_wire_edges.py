"""Boundary values that are written and read, and the headers a reply keeps (T2, T3, T16; wire sheet 2.2, 3, 7)."""

import os
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport import IncomingMessage
from pgqueue_admin.transport.wire import delivery_delay, host_info
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.header_composer import SEND, HeaderComposer, identity
from pgqueue_admin.transport.wire.ids import new_ids
from pgqueue_admin.transport.wire.serializers import JsonSerializer, Serializers
from pgqueue_admin.transport.wire.wire_times import (
    LONGEST_SPAN,
    SHORTEST_SPAN,
    parse_time,
    parse_timespan,
    wire_time,
    wire_timespan,
)

MOMENT = timedelta(microseconds=1)


def received(**headers: str | None) -> IncomingMessage:
    return IncomingMessage(Address("public", "Sales"), "row", 1, False, "{}", b"", dict(headers))


def written_with(ttbr: timedelta) -> str | None:
    composer = HeaderComposer("Sales", None, Serializers())
    return composer.letterhead("Shop.PlaceOrder", SEND, {}, ttbr).headers()[h.TIME_TO_BE_RECEIVED]


@pytest.mark.parametrize("ttbr", [SHORTEST_SPAN, LONGEST_SPAN])
def test_the_shortest_and_the_longest_life_are_sent(ttbr):
    assert parse_timespan(written_with(ttbr)) == ttbr


@pytest.mark.parametrize(
    ("ttbr", "said"),
    [
        (timedelta(), "over before"),
        (-MOMENT, "over before"),
        (SHORTEST_SPAN - MOMENT, "less than"),
        (LONGEST_SPAN + MOMENT, "for ever"),
    ],
)
def test_beyond_them_it_is_refused(ttbr, said):
    with pytest.raises(ValueError, match=said):
        written_with(ttbr)


def test_delays_of_nothing_and_of_the_longest_are_allowed():
    for delay in (timedelta(), LONGEST_SPAN):
        delivery_delay.check(delay, None, has_table=True)
    for delay in (-MOMENT, LONGEST_SPAN + MOMENT):
        with pytest.raises(ValueError, match="a delay of"):
            delivery_delay.check(delay, None, has_table=True)
    due = delivery_delay.headers({}, LONGEST_SPAN, '"public"."Sales"', since=datetime.now(UTC))[h.DELIVER_AT]
    assert parse_time(due) is not None


def test_a_time_that_is_past_is_due_now():
    assert delivery_delay.seconds(datetime.now(UTC) - timedelta(days=1)) == 0
    assert 0 < delivery_delay.seconds(datetime.now(UTC) + timedelta(seconds=90)) <= 90


def test_the_one_letter_of_ascii_that_is_escaped_for_no_need():
    assert h.dump({"\x7f": "\x7f\x7e"}) == '{"\\u007F":"\\u007F~"}'


@pytest.mark.parametrize("said", [{}, {h.MESSAGE_ID: ""}, {h.MESSAGE_ID: None}])
def test_without_an_id_of_its_own_a_message_has_its_rows(said):
    assert received(**said).message_id == "row"


def test_an_answer_keeps_conversation_and_correlation():
    asked = received(**{h.MESSAGE_ID: "m", h.CONVERSATION_ID: "talk", h.CORRELATION_ID: "first"})
    made = identity(asked)
    assert (made[h.RELATED_TO], made[h.CONVERSATION_ID], made[h.CORRELATION_ID]) == ("m", "talk", "first")
    assert made[h.MESSAGE_ID] not in ("m", None)


def test_an_answer_to_what_has_neither_begins_them():
    made = identity(received(**{h.MESSAGE_ID: "m"}), given="own")
    assert (made[h.MESSAGE_ID], made[h.RELATED_TO], made[h.CORRELATION_ID]) == ("own", "m", "m")
    assert made[h.CONVERSATION_ID]


def test_a_given_id_is_its_own_correlation():
    made = identity(None, given="own")
    assert (made[h.MESSAGE_ID], made[h.CORRELATION_ID]) == ("own", "own")


def test_a_forked_process_gives_ids_of_its_own():
    """Some are made in advance: both processes would use the same ones."""
    new_ids()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_ids()[0].encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with open(reading) as said:
        assert said.read() != new_ids()[0]


def test_two_programs_of_a_machine_are_two_hosts(monkeypatch):
    found = {host_info.host_id.__wrapped__()}
    monkeypatch.setattr(sys, "argv", ["another/program"])
    found.add(host_info.host_id.__wrapped__())
    assert [len(each) for each in found] == [32, 32]


@pytest.mark.parametrize("number", [2**63, -(2**63), 2**64, -9_999_999_999_999_999_999, 10**18, -(10**18), 10**40])
def test_no_number_is_rounded(number):
    assert JsonSerializer().load(b'{"total":%d}' % number) == {"total": number}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinity_do_not_become_null(number):
    assert b"null" not in JsonSerializer().dump({"total": number, "note": "none"})
    assert JsonSerializer().dump({"total": None}) == b'{"total":null}'


# 28-character times and .NET spans (wire sheet 7.1).
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
        ("10675199.02:48:05.4775807", timedelta(10_675_199, 10_085, 477_580)),  # the longest in .NET
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

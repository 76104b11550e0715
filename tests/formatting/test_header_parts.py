"""Headers are shown in four parts, with what a retry does to each (CONSOLE section 8)."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.formatting import header_parts
from pgqueue_admin.transport.wire.headers import FAILURE_PREFIXES, Headers
from pgqueue_admin.transport.wire.wire_times import parse_time

HEADERS = {
    "Shop.Tenant": "ravenhill-at",
    "NServiceBus.MessageId": "c7d1",
    "NServiceBus.FailedQ": '"shop"."Billing"',
    "NServiceBus.Retries.Timestamp": "2026-11-20 01:47:38:118900 Z",
    "NServiceBus.ExceptionInfo.HelpLink": None,
    "NServiceBus.ProcessingMachine": "app-2",
    "$.diagnostics.hostid": "8c4e",
    "NServiceBus.EnclosedMessageTypes": "Shop.A, Shop; Shop.B, Shop",
}


def parts(headers: Headers) -> list[header_parts.HeaderGroup]:
    return header_parts.parts(headers, FAILURE_PREFIXES, parse_time)


def test_four_parts_in_order() -> None:
    said = {part.name: [header.short for header in part.headers] for part in parts(HEADERS)}
    assert said == {
        "Identity": ["MessageId", "EnclosedMessageTypes"],
        "Failure": ["FailedQ", "Retries.Timestamp", "ExceptionInfo.HelpLink"],
        "Diagnostics": ["ProcessingMachine", "$.diagnostics.hostid"],
        "Yours": ["Shop.Tenant"],
    }


def test_each_header_says_what_a_retry_does_to_it() -> None:
    said = {header.short: header.on_retry for part in parts(HEADERS) for header in part.headers}
    assert said["FailedQ"] == "removed"
    assert said["Retries.Timestamp"] == "removed; left in, it would switch delayed retries off"
    assert said["MessageId"] == "kept"
    assert header_parts.kept_and_removed(HEADERS, FAILURE_PREFIXES)[1] == [
        "NServiceBus.FailedQ",
        "NServiceBus.Retries.Timestamp",
        "NServiceBus.ExceptionInfo.HelpLink",
    ]


def test_values_say_what_they_are() -> None:
    by_name = {header.short: header for part in parts(HEADERS) for header in part.headers}
    assert by_name["Retries.Timestamp"].at == datetime(2026, 11, 20, 1, 47, 38, 118900, tzinfo=UTC)
    assert by_name["ExceptionInfo.HelpLink"].means == "JSON null"
    assert by_name["EnclosedMessageTypes"].means == "2 types"


@given(st.dictionaries(st.text(), st.none() | st.text()))
def test_every_header_is_somewhere(headers: Headers) -> None:
    shown = [header.name for part in parts(headers) for header in part.headers]
    assert sorted(shown) == sorted(headers)

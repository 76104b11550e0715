"""Header JSON, names and the five prefixes (T4; wire sheet 2.2, 7, 8.3)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.transport.wire import headers as h

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize("text", [None, ""])
def test_no_text_is_no_headers(text):
    assert h.parse(text) == {}


@pytest.mark.parametrize(
    "text",
    [
        '{"NServiceBus.MessageId":"trunc',
        "not json at all",
        " ",
        "null",  # stops the original for good
        "[]",
        '"a string"',
        '{"Count":5}',
        '{"Count":NaN}',
        '{"Nested":{"x":"y"}}',
        '{"Flag":true}',
        '{"Flag":"true",}',
        '\ufeff{"NServiceBus.MessageId":"bom"}',
        '<?xml version="1.0"?><headers/>',
        '{"Lone":"\\ud83d"}',
        '{"\\udc00":"lone in a name"}',
        "[" * 100_000,
        '{"Big":' + "9" * 5000 + "}",
    ],
)
def test_headers_an_endpoint_cannot_read_are_unreadable(text):
    with pytest.raises(h.HeadersUnreadable):
        h.parse(text)


def test_headers_an_endpoint_reads_are_read():
    assert h.parse(' {"a" : "1", "a":"2", "b":null, "c":"a\\u0000b", "d":"x/y" } ') == {
        "a": "2",
        "b": None,
        "c": "a\0b",
        "d": "x/y",
    }


def test_written_as_the_original_writes():
    written = h.dump(
        {"NServiceBus.ContentType": "application/json", "a": 'é "q" \\', "b": "📦", "c": None, "d": "\0\n"}
    )
    assert written == (
        '{"NServiceBus.ContentType":"application\\/json","a":"é \\"q\\" \\\\","b":"\\uD83D\\uDCE6","c":null,'
        '"d":"\\u0000\\n"}'
    )


@pytest.mark.parametrize("value", [5, True, ["a"], {"a": "b"}, "\ud83d"])
def test_nothing_unreadable_is_ever_written(value):
    with pytest.raises(h.HeadersUnreadable):
        h.dump({"a": value})


@given(st.dictionaries(TEXTS, TEXTS | st.none()))
def test_any_headers_come_back(headers):
    written = h.dump(headers)
    assert h.parse(written) == headers == json.loads(written)
    assert "\0" not in written


def test_a_retry_takes_off_the_five_prefixes_and_nothing_else():
    failed = {
        "NServiceBus.MessageId": "m",
        "NServiceBus.Retries": "3",
        "NServiceBus.Retries.Timestamp": "t",
        "NServiceBus.FailedQ": "q",
        "NServiceBus.TimeOfFailure": "t",
        "NServiceBus.ExceptionInfo.Data.Message type": "x",
        "NServiceBus.ExceptionInfo.HelpLink": None,
        "ServiceControl.EditOf": "e",
        "NServiceBus.ProcessingEndpoint": "Sales",
        "nservicebus.failedq": "prefixes are compared exactly",
        "NServiceBus.TimeToBeReceived": "00:00:20",
    }
    assert list(h.strip_failure(failed)) == [
        "NServiceBus.MessageId",
        "NServiceBus.ProcessingEndpoint",
        "nservicebus.failedq",
        "NServiceBus.TimeToBeReceived",
    ]


@pytest.mark.parametrize(("value", "expected"), [("True", True), ("true", True), ("False", False), (None, False)])
def test_control_messages(value, expected):
    assert h.is_control_message({h.CONTROL_MESSAGE: value}) is expected
    assert h.is_control_message({}) is False

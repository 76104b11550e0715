"""Headers of a message: names, JSON format, and those that a retry removes (wire sheet 2.2, 7.2, 8.3)."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from json.encoder import encode_basestring as _quoted
from typing import Any

import orjson

from pgqueue_admin.transport.wire.type_names import full_name, split_types

Headers = dict[str, str | None]

MESSAGE_ID = "NServiceBus.MessageId"
CORRELATION_ID = "NServiceBus.CorrelationId"
CONVERSATION_ID = "NServiceBus.ConversationId"
RELATED_TO = "NServiceBus.RelatedTo"
MESSAGE_INTENT = "NServiceBus.MessageIntent"
ENCLOSED_MESSAGE_TYPES = "NServiceBus.EnclosedMessageTypes"
CONTENT_TYPE = "NServiceBus.ContentType"
REPLY_TO_ADDRESS = "NServiceBus.ReplyToAddress"
ORIGINATING_ENDPOINT = "NServiceBus.OriginatingEndpoint"
ORIGINATING_MACHINE = "NServiceBus.OriginatingMachine"
ORIGINATING_HOST_ID = "$.diagnostics.originating.hostid"
TIME_SENT = "NServiceBus.TimeSent"
DELIVER_AT = "NServiceBus.DeliverAt"
TIME_TO_BE_RECEIVED = "NServiceBus.TimeToBeReceived"
VERSION = "NServiceBus.Version"
CONTROL_MESSAGE = "NServiceBus.ControlMessage"
ERROR_CODE = "NServiceBus.ReturnMessage.ErrorCode"
SAGA_ID = "NServiceBus.SagaId"
SAGA_TYPE = "NServiceBus.SagaType"
ORIGINATING_SAGA_ID = "NServiceBus.OriginatingSagaId"
ORIGINATING_SAGA_TYPE = "NServiceBus.OriginatingSagaType"
TRACE_PARENT = "traceparent"  # W3C
START_NEW_TRACE = "NServiceBus.OpenTelemetry.StartNewTrace"
RETRIES = "NServiceBus.Retries"
RETRIES_TIMESTAMP = "NServiceBus.Retries.Timestamp"
FL_RETRIES = "NServiceBus.FLRetries"
FAILED_Q = "NServiceBus.FailedQ"
TIME_OF_FAILURE = "NServiceBus.TimeOfFailure"
EXCEPTION_INFO = "NServiceBus.ExceptionInfo."
EXCEPTION_TYPE = "NServiceBus.ExceptionInfo.ExceptionType"
INNER_EXCEPTION_TYPE = "NServiceBus.ExceptionInfo.InnerExceptionType"
EXCEPTION_MESSAGE = "NServiceBus.ExceptionInfo.Message"
EXCEPTION_SOURCE = "NServiceBus.ExceptionInfo.Source"
EXCEPTION_HELP_LINK = "NServiceBus.ExceptionInfo.HelpLink"
EXCEPTION_STACK_TRACE = "NServiceBus.ExceptionInfo.StackTrace"
EXCEPTION_DATA = "NServiceBus.ExceptionInfo.Data."
PROCESSING_STARTED = "NServiceBus.ProcessingStarted"
PROCESSING_ENDED = "NServiceBus.ProcessingEnded"
PROCESSING_ENDPOINT = "NServiceBus.ProcessingEndpoint"
PROCESSING_MACHINE = "NServiceBus.ProcessingMachine"
HOST_ID = "$.diagnostics.hostid"
HOST_DISPLAY_NAME = "$.diagnostics.hostdisplayname"
FORWARD_DESTINATION = "NServiceBus.SqlServer.ForwardDestination"  # so named on PostgreSQL too
RETRY_SUCCESSFUL = "ServiceControl.Retry.Successful"
RETRY_UNIQUE_MESSAGE_ID = "ServiceControl.Retry.UniqueMessageId"
RETRY_ACKNOWLEDGEMENT_QUEUE = "ServiceControl.Retry.AcknowledgementQueue"
RETRY_ACKNOWLEDGEMENT_SENT = "ServiceControl.Retry.AcknowledgementSent"

FAILURE_PREFIXES = (
    "NServiceBus.Retries",
    "NServiceBus.FailedQ",
    "NServiceBus.TimeOfFailure",
    "NServiceBus.ExceptionInfo.",
    "ServiceControl.EditOf",
)

_REMEMBERED = 2000  # characters: longer foreign texts are not cached
_VALUES = {str, type(None)}
_ASTRAL = re.compile(r"[\U00010000-\U0010ffff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class HeadersUnreadable(ValueError):
    """These headers are not a JSON object of texts."""


def parse(text: str | None) -> Headers:
    """Parse a headers column; empty without text. Raises HeadersUnreadable for what endpoints cannot read, either."""
    if not text:
        return {}
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:  # it refuses more than endpoints do, but agrees with them on the rest
        found = _read(text)
        _refuse_unless_texts(found)
    if type(found) is not dict or not _VALUES.issuperset(map(type, found.values())):
        _refuse_unless_texts(found)
    return found


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HeadersUnreadable(f"the headers are not JSON: {error}") from error


class SerializedHeaders(Mapping[str, str | None]):
    """Immutable serialized headers, with the message's id; parsed on demand for other headers."""

    __slots__ = ("_read", "message_id", "text")

    def __init__(self, message_id: str, text: str):
        self.message_id = message_id
        self.text = text
        self._read: Headers | None = None

    def _headers(self) -> Headers:
        if self._read is None:
            self._read = parse(self.text)
        return self._read

    def __getitem__(self, name: str) -> str | None:
        return self._headers()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._headers())

    def __len__(self) -> int:
        return len(self._headers())


def message_id(headers: Mapping[str, str | None]) -> str | None:
    return headers.message_id if type(headers) is SerializedHeaders else headers.get(MESSAGE_ID)


def dump(headers: Mapping[str, str | None]) -> str:
    """Write headers as endpoints do: compact, ``/`` escaped, characters beyond U+FFFF as surrogate escapes."""
    return headers.text if type(headers) is SerializedHeaders else f"{{{pairs(headers)}}}"


def pairs(headers: Mapping[str, str | None]) -> str:
    """The JSON members, without braces."""
    try:
        each = [f"{_quoted(name)}:{'null' if value is None else _quoted(value)}" for name, value in headers.items()]
    except TypeError:
        _refuse_unless_texts(headers)
        raise
    text = ",".join(each).replace("/", "\\/").replace("\x7f", "\\u007F")
    if text.isascii():
        return text
    _refuse_unless_texts(headers)
    return _ASTRAL.sub(_surrogates, text)


def strip_failure(headers: Headers) -> Headers:
    """Headers of a retried message: all except those with ServiceControl's five prefixes."""
    return {name: value for name, value in headers.items() if not name.startswith(FAILURE_PREFIXES)}


def of_its_own_trace(headers: Headers) -> Headers:
    """Header that a traced message gets when delayed or dead-lettered: it returns long after its sender's trace."""
    return {START_NEW_TRACE: "True"} if TRACE_PARENT in headers else {}


def enclosed_types(headers: Headers) -> tuple[str, ...]:
    """Full names of the message's types, without assemblies, concrete type first."""
    return types_in(headers.get(ENCLOSED_MESSAGE_TYPES) or "")


def enclosed_type(headers: Headers) -> str:
    """The message's own type, e.g. ``Shop.Messages.Commands.PlaceOrder``; empty if the headers name none."""
    types = enclosed_types(headers)
    return types[0] if types else ""


def is_control_message(headers: Headers) -> bool:
    said = headers.get(CONTROL_MESSAGE)
    return said is not None and said.lower() == "true"


def types_in(text: str) -> tuple[str, ...]:
    """As ``enclosed_types``, of the header's text; cached, because a queue sees the same few repeatedly."""
    return _types_in(text) if len(text) <= _REMEMBERED else _types_in.__wrapped__(text)


@lru_cache(maxsize=1024)
def _types_in(text: str) -> tuple[str, ...]:
    return tuple(full_name(part) for part in split_types(text))


def _refuse_unless_texts(headers: Any) -> None:
    """Raise HeadersUnreadable for a value that is no text. Called on suspicion: it costs more than parsing."""
    if not isinstance(headers, dict):
        raise HeadersUnreadable(f"the headers are {_kind(headers)}, not an object")
    for name, value in headers.items():
        if value is not None and not isinstance(value, str):
            raise HeadersUnreadable(f"header {name!r} is {_kind(value)}, not a text")
        if _SURROGATE.search(name) or _SURROGATE.search(value or ""):
            raise HeadersUnreadable(f"header {name!r} holds half a character (a lone surrogate)")


def _kind(value: Any) -> str:
    kinds = {"NoneType": "null", "list": "an array", "dict": "an object", "str": "a text", "bool": "true or false"}
    return kinds.get(type(value).__name__, "a number")


def _surrogates(match: re.Match[str]) -> str:
    high, low = divmod(ord(match[0]) - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04X}\\u{0xDC00 + low:04X}"

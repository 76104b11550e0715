"""The format rules of an endpoint's headers, and the headers of each kind of row (wire sheet 2.2, 3, 7, 8.1)."""

import json
import re
from collections.abc import Callable, Iterator
from uuid import UUID

PREFIX = "NServiceBus."
INTENTS = {"Send", "Publish", "Reply", "Subscribe", "Unsubscribe"}
EXCEPTION = ("ExceptionType", "Message", "Source", "StackTrace")

_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{6} Z")
_SPAN = re.compile(r"-?(\d+\.)?\d\d:\d\d:\d\d(\.\d{7})?")
_CANONICAL = re.compile(r'"(?:[^"]|"")+"\."(?:[^"]|"")+"')
_HOST = re.compile(r"[0-9a-f]{32}")


def _guid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


_TIMES = ("TimeSent", "DeliverAt", "TimeOfFailure", "ProcessingStarted", "ProcessingEnded", "Retries.Timestamp")
_RULES: dict[str, Callable[[str], bool]] = {
    **{PREFIX + name: _matches(_TIME) for name in _TIMES},
    **{PREFIX + name: _guid for name in ("MessageId", "ConversationId", "SagaId", "OriginatingSagaId")},
    **{PREFIX + name: ("True", "False").__contains__ for name in ("ControlMessage", "IsSagaTimeoutMessage")},
    PREFIX + "OpenTelemetry.StartNewTrace": ("True", "False").__contains__,
    PREFIX + "TimeToBeReceived": _matches(_SPAN),
    PREFIX + "MessageIntent": INTENTS.__contains__,
    PREFIX + "ReplyToAddress": _matches(_CANONICAL),
    PREFIX + "Retries": lambda text: text.isascii() and text.isdigit() and int(text) > 0,
    PREFIX + "ExceptionInfo.Message": lambda text: len(text) <= 16_384,
    "$.diagnostics.hostid": _matches(_HOST),
    "$.diagnostics.originating.hostid": _matches(_HOST),
    "traceparent": _matches(re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")),
}


def breaches(text: str) -> Iterator[str]:
    """Violations in this headers column that an endpoint would fail on."""
    headers = json.loads(text)
    if not isinstance(headers, dict):
        yield "not an object"
        return
    if "/" in text.replace("\\/", ""):
        yield "a bare slash"
    if any(ord(character) > 0xFFFF for character in text):
        yield "a character that endpoints write as two escapes"
    for name, value in headers.items():
        if value is not None and not isinstance(value, str):
            yield f"{name} is no text"
        elif value is not None and name in _RULES and not _RULES[name](value):
            yield f"{name}: {value!r}"


def dead_breaches(text: str) -> Iterator[str]:
    """Like ``breaches``, for a message in an error queue."""
    yield from breaches(text)
    headers = json.loads(text)
    forwarded = PREFIX + "ProcessingEndpoint" not in headers
    wanted = [PREFIX + "FailedQ", PREFIX + "TimeOfFailure", PREFIX + "MessageId"]
    wanted += [f"{PREFIX}ExceptionInfo.{name}" for name in EXCEPTION]
    if not forwarded:
        wanted += [PREFIX + "ProcessingMachine", "$.diagnostics.hostid", "$.diagnostics.hostdisplayname"]
        if not _CANONICAL.fullmatch(headers.get(PREFIX + "FailedQ") or ""):
            yield "FailedQ is not canonical"
    yield from (f"no {name}" for name in wanted if name not in headers)
    yield from _left_over(headers, "Retries", "FLRetries", "SqlServer.ForwardDestination")


def audited_breaches(text: str) -> Iterator[str]:
    """Like ``breaches``, for a message in an audit queue."""
    yield from breaches(text)
    headers = json.loads(text)
    wanted = ("ProcessingStarted", "ProcessingEnded", "ProcessingEndpoint", "ProcessingMachine", "MessageId")
    yield from (f"no {name}" for name in wanted if PREFIX + name not in headers)
    yield from _left_over(headers, "FailedQ", "SqlServer.ForwardDestination")


def delayed_breaches(text: str) -> Iterator[str]:
    """Like ``breaches``, for a message in a delayed table."""
    yield from breaches(text)
    wanted = ("SqlServer.ForwardDestination", "DeliverAt", "MessageId")
    yield from (f"no {name}" for name in wanted if PREFIX + name not in json.loads(text))


def _left_over(headers: dict[str, str | None], *names: str) -> Iterator[str]:
    yield from (f"{name} is left over" for name in names if PREFIX + name in headers)

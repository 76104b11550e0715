"""What the messages of a group share and where they differ: fields, headers and JSON fields of its newest members."""

import json
from binascii import Error as BinasciiError
from binascii import unhexlify
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pgqueue_admin.archive import long_headers
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.headers import short_type

MOST_FIELDS = 6  # that differ
MOST_SHARED = 12
MOST_VALUES = 3  # of a field that differs
MOST_DIFFERENT = 12  # values; a field with more tells each message from the others and nothing of them all
LONGEST = 100  # characters of a value
# the row's own columns say these, or they are of each message alone
_LEFT_OUT = {
    h.MESSAGE_ID, h.ENCLOSED_MESSAGE_TYPES, h.FAILED_Q, h.EXCEPTION_TYPE, h.EXCEPTION_MESSAGE, h.EXCEPTION_STACK_TRACE,
    h.PROCESSING_ENDPOINT, h.PROCESSING_MACHINE, h.TIME_SENT, h.TIME_OF_FAILURE, h.CONVERSATION_ID,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SharedField:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class DifferingValue:
    """One line of a field that differs; ``width`` of its bar, of 136."""

    name: str
    value: str
    messages: int
    width: int


@dataclass(frozen=True, slots=True)
class Comparison:
    looked: int
    shared: list[SharedField]
    differing: list[DifferingValue]


def compare(members: Sequence[Any]) -> Comparison:
    """``members``: rows of ``failure_groups.members``. One message has all in common with itself."""
    counted: dict[str, Counter[str]] = {}
    for member in members:
        for name, value in _fields(member):
            counted.setdefault(name, Counter())[value[:LONGEST]] += 1
    whole = len(members)
    shared = [SharedField(name, next(iter(values))) for name, values in counted.items() if _is_shared(values, whole)]
    telling = sorted((item for item in counted.items() if _tells(item[1], whole)), key=lambda item: _evenness(item[1]))
    return Comparison(whole, shared[:MOST_SHARED], list(_lines(telling[:MOST_FIELDS], whole)))


def _is_shared(values: Counter[str], whole: int) -> bool:
    return len(values) == 1 and values.total() == whole


def _tells(values: Counter[str], whole: int) -> bool:
    return len(values) + (values.total() < whole) > 1 and len(values) <= min(MOST_DIFFERENT, max(whole // 2, 2))


def _evenness(values: Counter[str]) -> tuple[int, int]:
    """Few values first, and of these the one whose commonest is the most common."""
    return len(values), -values.most_common(1)[0][1]


def _lines(telling: Iterable[tuple[str, Counter[str]]], whole: int) -> Iterator[DifferingValue]:
    for name, values in telling:
        for value, count in values.most_common(MOST_VALUES):
            yield DifferingValue(name, value, count, round(136 * count / whole))
        if missing := whole - values.total():
            yield DifferingValue(name, "not there", missing, round(136 * missing / whole))


def _fields(member: Any) -> Iterator[tuple[str, str]]:
    yield "Message type", short_type(member.type or "") or "unknown"
    yield "Queue", member.queue
    for name, value in (("Endpoint", member.endpoint), ("Host", member.machine), ("Attempts", member.attempts)):
        if value is not None:
            yield name, str(value)
    yield from _headers(member)
    yield from _payload(member)


def _headers(member: Any) -> Iterator[tuple[str, str]]:
    found, _ = long_headers.read(member.headers, member.headers_length)
    for name, value in long_headers.shown(found).items():
        if name not in _LEFT_OUT and value:
            yield f"Header {name}", value


def _payload(member: Any) -> Iterator[tuple[str, str]]:
    """The first level of a small JSON object; numbers as they are written."""
    try:
        text = member.content if member.kind == "lease" else unhexlify(member.content or "").decode("utf-8-sig")
        document = json.loads(text, parse_int=str, parse_float=str, parse_constant=str) if text else None
    except (ValueError, BinasciiError, RecursionError):
        return
    if isinstance(document, dict):
        for name, value in document.items():
            if isinstance(value, str | bool):
                yield f"Body {name}", str(value).lower() if isinstance(value, bool) else value

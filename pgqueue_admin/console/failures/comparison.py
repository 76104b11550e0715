"""Compares the newest messages of a group: fields, headers and JSON fields that they share, and those that differ."""

import json
from binascii import Error as BinasciiError
from binascii import unhexlify
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgqueue_admin.archive import long_headers
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.masking.message_types import types_of, types_told
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.type_names import short_type

MOST_FIELDS = 6  # fields that differ
MOST_SHARED = 12
MOST_VALUES = 3  # of a field that differs
MOST_DIFFERENT = 12  # values; a field with more identifies single messages and says nothing about the group
LONGEST = 100  # characters of a value that are shown; all of it is compared
# shown in the row's own columns, or different in every message
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
    """A value of a field that differs; ``width`` of its bar, of 136."""

    name: str
    value: str
    messages: int
    width: int


@dataclass(frozen=True, slots=True)
class Comparison:
    looked: int
    shared: list[SharedField]
    differing: list[DifferingValue]


Value = tuple[bool, str]  # whether it is a text, and how it is written: "7" is not 7
Fields = dict[str, Value]


@dataclass(slots=True)
class _Field:
    """Counts of each value in ``looked`` messages: those whose part with this field was read completely."""

    name: str
    values: Counter[Value]
    looked: int

    @property
    def missing(self) -> int:
        return self.looked - self.values.total()

    @property
    def tells(self) -> bool:
        is_split = len(self.values) + (self.missing > 0) > 1
        return is_split and len(self.values) <= min(MOST_DIFFERENT, max(self.looked // 2, 2))

    @property
    def evenness(self) -> tuple[int, int]:
        """Sorts fields with few values first, and of these the one whose commonest value is most frequent."""
        return len(self.values), -self.values.most_common(1)[0][1]


def compare(members: Sequence[Any], access: ContentAccess) -> Comparison:
    """``members``: rows of ``failure_groups.members``. A single message shares every field with itself.

    A field masked in one message is compared in none: that all messages share it would reveal something, too.
    """
    fields, whole = _counted(members, access), len(members)
    shared = [SharedField(each.name, _shown(next(iter(each.values)))) for each in fields if _is_shared(each, whole)]
    telling = sorted((each for each in fields if each.tells), key=lambda each: each.evenness)
    return Comparison(whole, shared[:MOST_SHARED], list(_lines(telling[:MOST_FIELDS], whole)))


def _counted(members: Sequence[Any], access: ContentAccess) -> list[_Field]:
    looked, values = Counter[int](), dict[tuple[int, str], Counter[Value]]()
    hidden = set[tuple[int, str]]()
    for member in members:
        for part, fields in enumerate((_columns(member), _headers(member), _payload(member))):
            looked[part] += fields is not None
            hidden |= {(part, name) for name in _hidden(fields or {}, member, access)}
            for name, value in (fields or {}).items():
                values.setdefault((part, name), Counter())[value] += 1
    return [
        _Field(name, counter, looked[part]) for (part, name), counter in values.items() if (part, name) not in hidden
    ]


def _hidden(fields: Fields, member: Any, access: ContentAccess) -> Iterator[str]:
    """Names of the fields whose values may not be shown."""
    if not (access.rules and fields):
        return
    types = _types(member)
    for name, (is_text, value) in fields.items():
        whose, _, bare = name.partition(" ")
        if (whose == "Header" and access.hides_header(bare, value, types)) or (
            whose == "Body" and access.hides_field(bare, value, types, is_single=is_text or value[:1] not in ("{", "["))
        ):
            yield name


def hidden_headers(fields: Mapping[str, str | None], member: Any, access: ContentAccess) -> set[str]:
    """Names of the headers whose values may not be shown."""
    types = _types(member) if access.rules and fields else ()
    return {name for name, value in fields.items() if access.rules and access.hides_header(name, value or "", types)}


def _types(member: Any) -> tuple[str, ...]:
    """The message types by which masking rules are selected."""
    if member.kind == "lease":
        return types_of(member.type)
    return types_told(member.type, long_headers.read(member.headers, member.headers_length)[0])


def _is_shared(field: _Field, whole: int) -> bool:
    return len(field.values) == 1 and field.values.total() == whole


def _lines(telling: Iterable[_Field], whole: int) -> Iterator[DifferingValue]:
    for field in telling:
        rest = [("not there", field.missing), ("not compared", whole - field.looked)]
        common = [(_shown(value), count) for value, count in field.values.most_common(MOST_VALUES)]
        for said, count in (*common, *rest):
            if count:
                yield DifferingValue(field.name, said, count, round(136 * count / whole))


def _shown(value: Value) -> str:
    text = value[1]
    return text[:LONGEST] + "…" if len(text) > LONGEST else text or "empty"


def _columns(member: Any) -> Fields:
    given = {"Endpoint": member.endpoint, "Host": member.machine, "Attempts": member.attempts}
    known = {name: str(value) for name, value in given.items() if value is not None}
    fields = {"Message type": short_type(member.type or "") or "unknown", "Queue": member.queue, **known}
    return {name: (True, value) for name, value in fields.items()}


def _headers(member: Any) -> Fields | None:
    """None if the headers are unreadable, or longer than what was read."""
    found, trouble = long_headers.read(member.headers, member.headers_length)
    if trouble or long_headers.is_cut(member.headers, member.headers_length):
        return None
    return {f"Header {name}": (True, value or "") for name, value in found.items() if name not in _LEFT_OUT}


class _Number(str):
    """A number as it is written: 1.50 differs from 1.5, and none is too large."""

    __slots__ = ()


def _payload(member: Any) -> Fields | None:
    """The first level of a small JSON object. None for any other body, and for one longer than what was read."""
    try:
        text = member.content if member.kind == "lease" else unhexlify(member.content or "").decode("utf-8-sig")
        document = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number) if text else None
        if not isinstance(document, dict):
            return None
        return {f"Body {name}": (_is_text(value), _written(value)) for name, value in document.items()}
    except (ValueError, BinasciiError, RecursionError):
        return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, _Number)


def _written(value: Any) -> str:
    """A text as it is; other values as JSON with sorted names."""
    return str(value) if isinstance(value, str) else _as_json(value)


def _as_json(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_as_json(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_json, value)) + "]"
    return str(value) if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)

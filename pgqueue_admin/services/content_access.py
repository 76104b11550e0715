"""What of messages a person may read: figures always; bodies, header values and what exceptions say by a right.

Parts of these that a masking rule hides are read by a further right, which lasts for minutes and asks for a reason.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from pgqueue_admin.archive import long_headers
from pgqueue_admin.archive.messages import ArchivedMessage
from pgqueue_admin.formatting import json_field, payload_fields
from pgqueue_admin.formatting.payload_fields import BodyStart
from pgqueue_admin.history.storage.message_lookup import FinishedMessage
from pgqueue_admin.models import AuditEntry, FailureGroup, MaskingReveal, MaskingRule, Process, database_clock
from pgqueue_admin.monitor.lease_messages import LeaseMessage
from pgqueue_admin.monitor.message import StoredMessage
from pgqueue_admin.services.masking import body as bodies
from pgqueue_admin.services.masking import rule as masking_rule
from pgqueue_admin.services.masking import text as texts
from pgqueue_admin.services.masking.body import MaskedBody
from pgqueue_admin.services.masking.rule import Rule, RuleFault, of_types
from pgqueue_admin.services.permissions import missing, refusal_for
from pgqueue_admin.transport.wire import headers as h

HIDDEN = "•••"  # stands for the value of a header
# Of these the value is a figure, a type, a time or a name by which messages are found: all others may carry content.
FIGURES = frozenset(
    {
        h.MESSAGE_ID, h.CORRELATION_ID, h.CONVERSATION_ID, h.RELATED_TO, h.MESSAGE_INTENT, h.ENCLOSED_MESSAGE_TYPES,
        h.CONTENT_TYPE, h.REPLY_TO_ADDRESS, h.ORIGINATING_ENDPOINT, h.ORIGINATING_MACHINE, h.TIME_SENT, h.DELIVER_AT,
        h.TIME_TO_BE_RECEIVED, h.VERSION, h.CONTROL_MESSAGE, h.RETRIES, h.RETRIES_TIMESTAMP, h.FL_RETRIES, h.FAILED_Q,
        h.TIME_OF_FAILURE, h.EXCEPTION_TYPE, h.PROCESSING_STARTED, h.PROCESSING_ENDED, h.PROCESSING_ENDPOINT,
        h.PROCESSING_MACHINE, h.FORWARD_DESTINATION, "NServiceBus.IsSagaTimeoutMessage", "Pgqueue.EditOf",
    }
)  # fmt: skip
_UNREADABLE = '"not shown"'  # no headers, as what it stands for is none
_LEASE_FIELD = 200  # characters after which the value of a payload's column is cut
_LONGEST_ERROR = 2_000  # characters of what a process says (workers.reporting.metrics)
_RAISED = re.compile(r"(?P<type>[^\W\d][\w.<>$+`]*): ")  # of what a handler raised, as a process keeps it
_ROW_ERROR = 400  # likewise of an error in a list
MASKED = "Masking rules are in force: the console shows it with their parts hidden."
_SEARCHED = (
    "Searching in what masking rules hide would tell it, letter by letter. Reveal it first, on a message's page."
)

Stored = TypeVar("Stored", bound=StoredMessage)


class Payload(NamedTuple):
    """Fields of a body, by path. ``missing``: why another may be there all the same, in a word or two; empty: none."""

    fields: Mapping[str, str]
    missing: str = ""


@dataclass(frozen=True, slots=True)
class ContentAccess:
    """``refusal``: a sentence that says which right is missing; empty: what ``rules`` do not hide may be read.

    Each method gives what it was given, without what may not be read. Pages and Django admin read messages through it,
    so that no template has anything to hide. Acts never do: what is sent is what is stored.
    ``revealed_until``: there are rules, and this person asked to see what they hide.
    """

    refusal: str = ""
    rules: tuple[Rule, ...] = ()
    revealed_until: datetime | None = None

    @property
    def withheld(self) -> str:
        """For what shows a message's texts as a whole or not at all; empty: all may be read."""
        return self.refusal or (MASKED if self.rules else "")

    def archived(self, message: ArchivedMessage) -> ArchivedMessage:
        if self.refusal:
            return ArchivedMessage(_Withheld(message))
        return ArchivedMessage(_Masked(message, self)) if self.rules else message

    def stored(self, message: Stored) -> Stored:
        """Of a queue or a delayed table."""
        if self.refusal:
            text = _UNREADABLE if message.unreadable else _without_content(message.headers_text)
            return replace(message, headers_text=text, headers_size=None)
        if not self._of_headers:
            return message
        text = _UNREADABLE if message.unreadable else self._masked_text(message.headers, message.headers_text)
        return message if text == message.headers_text else replace(message, headers_text=text, headers_size=None)

    def finished(self, message: FinishedMessage) -> FinishedMessage:
        """Masked, its body is left: who draws one asks ``body``."""
        if self.refusal:
            return replace(message, headers=_without_content(message.headers), body=None, exception_message=None)
        if not self.rules:
            return message
        types = types_told(message.type, long_headers.read(message.headers, None)[0])
        return replace(
            message,
            headers=self._headers_text(message.headers, None),
            exception_message=self._error(h.EXCEPTION_MESSAGE, message.exception_message, types),
        )

    def lease(self, message: LeaseMessage) -> LeaseMessage:
        """Its kind is its type; the other fields are content."""
        if self.refusal:
            return replace(message, fields={})
        rules = of_types(self.rules, types_of(message.kind))
        shown = {name: _lease_field(name, value, rules) for name, value in message.fields.items()} if rules else {}
        return replace(message, fields=shown) if rules else message

    def failure(self, group: FailureGroup) -> FailureGroup:
        """Not for saving: without the message and the frame that its messages died of."""
        if not (self.refusal or self._of_headers):
            return group
        shown = copy(group)
        if self.refusal:
            shown.message = shown.frame = ""
        else:
            shown.message = self._error(h.EXCEPTION_MESSAGE, group.message, (), is_folded=True) or ""
            shown.frame = self._error(h.EXCEPTION_STACK_TRACE, group.frame, ()) or ""
        return shown

    def entry(self, entry: AuditEntry) -> AuditEntry:
        """Not for saving: an edit names what was typed."""
        if self.withheld and entry.verb == "retry" and "edit" in (entry.after or {}):
            shown = copy(entry)
            shown.before, shown.after = self._edit_of_many(entry.before), self._edit_of_many(entry.after)
            return shown
        if not self.withheld or entry.verb != "edit":
            return entry
        shown, change = copy(entry), _edit if self.refusal else self._edit
        shown.before, shown.after, shown.bodies = change(entry.before), change(entry.after), None
        return shown

    def text(self, text: str) -> str:
        """A mail as it was sent."""
        if self.refusal or any(_named(self.rules, name) for name in (h.EXCEPTION_MESSAGE, h.EXCEPTION_STACK_TRACE)):
            return ""
        return texts.masked(text, self.rules) if self.reads_texts else text

    def line(self, text: str) -> str:
        """Of a log: only expressions can be looked for there."""
        return texts.masked(text, self.rules) if self.reads_texts else text

    def process_error(self, process: Process) -> str:
        """What went wrong last. Of what a handler raised: its type, and what it says where that may be read."""
        said = process.last_error
        raised = _RAISED.match(said) if process.role == "endpoint" else None
        if raised is None:
            return self.line(said)
        is_cut = len(said) >= _LONGEST_ERROR
        what = "" if self.refusal else self._error(h.EXCEPTION_MESSAGE, said[raised.end() :], (), is_cut=is_cut)
        return raised[0] + what if what else raised["type"]

    @property
    def reads_texts(self) -> bool:
        """Whether a rule looks into every text."""
        return any(rule.regex is not None for rule in self.rules)

    def masks_bodies(self, types: Collection[str] = ()) -> bool:
        """Of these types; none: of any."""
        rules = of_types(self.rules, types) if types else self.rules
        return any(rule.header is None for rule in rules)

    def body(self, raw: bytes, content_type: str | None, types: Collection[str]) -> MaskedBody | None:
        """None where it may be read as it is. ``raw``: all of it, or one byte more than is looked through."""
        return bodies.masked(raw, content_type, of_types(self.rules, types))

    def part(self, types: Collection[str]) -> MaskedBody | None:
        """Of a body of which only a part is kept; None where no rule looks into it."""
        rules = [rule for rule in of_types(self.rules, types) if rule.header is None]
        return bodies.of_a_part(rules) if rules else None

    def payload(self, start: BodyStart, content_type: str | None, types: Collection[str]) -> Payload:
        """For columns of a list. Of a body that was cut nothing, where a rule may hide a part of such a body."""
        if self.refusal:
            return Payload({}, "not shown")
        if start.part is None:
            return Payload({}, "not read" if start.is_cut else "no body")
        masked = self.part(types) if start.is_cut else self.body(start.part, content_type, types)
        if masked is not None and masked.content is None:
            return Payload({}, "hidden")
        shown = start if masked is None else BodyStart(masked.content, is_cut=False)
        found = payload_fields.of_body(shown)
        return Payload(found or {}, "no JSON" if found is None else "not read" if start.is_cut else "")

    def archived_payload(self, row: Any) -> Payload:
        """Of a row of ``store.body_starts``."""
        headers, _ = long_headers.read(row.headers, row.headers_length)
        start = BodyStart(None if row.part is None else bytes(row.part), row.is_cut)
        return self.payload(start, headers.get(h.CONTENT_TYPE), _types_of_row(row))

    def headers(self, headers: Mapping[str, str | None], types: Collection[str] | None = None) -> h.Headers:
        """``types``: of which they are; None: as they say themselves."""
        if self.refusal:
            return _hidden(dict(headers))
        of = types_of(headers.get(h.ENCLOSED_MESSAGE_TYPES)) if types is None else types
        return {name: self._value(name, value, of) for name, value in headers.items()}

    def hides_in(self, text: str | None, length: int | None) -> bool:
        """Whether something of these headers may not be taken away as it was written. ``length``: of all of them."""
        if not self._of_headers or not text:
            return False
        found, trouble = long_headers.read(text, length)
        if trouble or long_headers.is_cut(text, length):
            return True
        return self.headers(found) != found or not _is_all_of(text, found)

    def error(self, text: str | None, types: Collection[str] = ()) -> str | None:
        """What an exception says, in a list."""
        is_cut = len(text or "") >= _ROW_ERROR
        return None if self.refusal else self._error(h.EXCEPTION_MESSAGE, text, types, is_cut=is_cut)

    def hides_header(self, name: str, value: str | None, types: Collection[str] = ()) -> bool:
        return name not in FIGURES and self._value(name, value, types) != value

    def hides_field(self, name: str, value: str, types: Collection[str] = (), *, is_single: bool) -> bool:
        """Of the first level of a JSON body. ``is_single``: no object and no list, which may hold a hidden part."""
        return _hides_field(name, value, of_types(self.rules, types), is_single=is_single)

    def hides_edited(self, part: str, name: str) -> bool:
        """Whether the values of this header or field, as somebody typed them for many messages, may not be read."""
        return bool(
            self.search_refusal("header", (name,)) if part == "header" else self.search_refusal("body", _keys(name))
        )

    def search_refusal(self, field: str, path: tuple[str, ...]) -> str:
        """Why a term may not be looked for; empty: it may. ``field``: empty for everywhere.

        By the rules alone, whatever type they are of: an answer by message would tell what is hidden there.
        """
        if field == "conversation":  # it asks for an id
            return ""
        if self.refusal:
            return self.refusal
        if any(_is_searched(rule, field, path) for rule in self.rules):
            return _SEARCHED
        return ""

    @property
    def _of_headers(self) -> bool:
        return any(rule.path is None for rule in self.rules)

    def _value(self, name: str, value: str | None, types: Collection[str]) -> str | None:
        if value is None or name in FIGURES:
            return value
        rules = of_types(self.rules, types)
        named = _named(rules, name)
        return named.bar if named else texts.masked(value, rules)

    def _error(
        self, name: str, text: str | None, types: Collection[str], *, is_folded: bool = False, is_cut: bool = False
    ) -> str | None:
        """A header that stands in a column of its own, too. What is cut may end within a hidden part: all of it is."""
        rules = of_types(self.rules, types)
        if not text or not rules:
            return text
        if named := _named(rules, name):
            return named.bar
        looking = next((rule for rule in rules if rule.regex is not None), None)
        if looking is None:
            return text
        return looking.bar if is_cut else texts.masked(_FOLDED.sub("<…>", text) if is_folded else text, rules)

    def _headers_text(self, text: str | None, length: int | None) -> str | None:
        """``length``: of the whole, where ``text`` may be its start."""
        if not self._of_headers or not text:
            return text
        found, trouble = long_headers.read(text, length)
        if trouble:
            return _UNREADABLE
        if long_headers.is_cut(text, length) and found:
            found = dict(list(found.items())[:-1])  # the last may be cut within a hidden part
        return self._masked_text(found, text, is_whole=not long_headers.is_cut(text, length))

    def _masked_text(self, found: h.Headers, text: str | None, *, is_whole: bool = True) -> str | None:
        """Always written anew: of several values of one name only the last is read, and the text has them all."""
        return h.dump(self.headers(found)) if found or not is_whole else text

    def _edit_of_many(self, said: Any) -> Any:
        edit = said.get("edit") if isinstance(said, dict) else None
        if not isinstance(edit, dict) or "value" not in edit:
            return said
        part = "header" if "header" in edit else "field"
        is_hidden = self.hides_edited(part, str(edit.get(part, "")))
        return {**said, "edit": {**edit, "value": HIDDEN}} if is_hidden else said

    def _edit(self, said: Any) -> Any:
        """What was typed is of a message whose type is not known any more."""
        if not isinstance(said, dict) or not isinstance(said.get("headers"), dict):
            return said
        return {**said, "headers": self.headers(said["headers"], ())}


REFUSED = f"Reading what messages say {missing('read')}."
ALL = ContentAccess()
NOTHING = ContentAccess(REFUSED)
# what stands for varying parts of a failure's message, and what is written beside it without a blank
_FOLDED = re.compile(r"\S*<(?:n|id|text)>\S*")


def of(person: Any) -> ContentAccess:
    """Read once for each user object, which is once for each request."""
    if refusal_for(person, "read"):
        return NOTHING
    if isinstance(person, str):
        return ALL  # somebody with a shell here
    known = getattr(person, "_content_access", None)
    if known is None:
        known = person._content_access = _of_reader(person)
    return known


def of_everybody() -> ContentAccess:
    """For what is read by people without an account: mails."""
    return _by_rules()


def _of_reader(person: Any) -> ContentAccess:
    masked = _by_rules()
    if not masked.rules or refusal_for(person, "reveal"):
        return masked
    asked = MaskingReveal.objects.filter(person=person, ends_at__gt=database_clock.now()).first()
    return ContentAccess(revealed_until=asked.ends_at) if asked else masked


def _by_rules() -> ContentAccess:
    """Of a rule that this version cannot read nobody knows what it hides: then nothing is shown."""
    try:
        return ContentAccess(rules=tuple(of_row(each) for each in MaskingRule.objects.all()))
    except RuleFault as fault:
        return ContentAccess(f"A masking rule cannot be read, so nothing is shown. {fault}")


def of_row(row: MaskingRule) -> Rule:
    """Raises RuleFault."""
    types = row.types if isinstance(row.types, list) else [row.types]
    return masking_rule.ready(row.name, row.kind, row.pattern, tuple(map(str, types)))


def types_of(*said: str | None) -> tuple[str, ...]:
    """Full names and their last parts, of one or more types as headers and columns have them."""
    full = [name for each in said for part in (each or "").split(";") if (name := part.split(",")[0].strip())]
    return tuple(dict.fromkeys([*full, *map(h.short_type, full)]))


def types_told(column: str | None, headers: Mapping[str, str | None]) -> tuple[str, ...]:
    """Of a message whose column names the first of its types alone. None where its headers do not name them all."""
    said = headers.get(h.ENCLOSED_MESSAGE_TYPES)
    return types_of(column, said) if said else ()


def _keys(path: str) -> tuple[str, ...]:
    """Of a field's path; none, and so everywhere, of what is no path."""
    try:
        return json_field.path_of(path)
    except json_field.PathFault:
        return ()


class _Withheld:
    """A row of the archive without its content."""

    __slots__ = ("_row",)

    def __init__(self, row: Any):
        self._row = row

    def __getattr__(self, name: str) -> Any:
        if name in _CONTENT:
            return None
        value = getattr(self._row, name)
        return _without_content(value) if name == "headers" else value


class _Masked:
    """A row of the archive with the hidden parts of its texts hidden; lengths are of what is shown."""

    __slots__ = ("_access", "_row")

    def __init__(self, row: Any, access: ContentAccess):
        self._row, self._access = row, access

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._row, name)
        if name == "headers":
            return self._access._headers_text(value, self._length_of("headers"))
        if name == "headers_length":
            return None if value is None or not self._is_changed("headers") else self._shown_length(value)
        if name == "headers_bytes":
            return None if self._is_changed("headers") else value
        if name in _ERRORS:
            return self._error(name, value)
        if name.endswith("_length") and name.removesuffix("_length") in _ERRORS:
            column = name.removesuffix("_length")
            return len(getattr(self, column) or "") if self._is_changed(column) else value
        return None if name == "message" else value

    def _error(self, name: str, value: str | None) -> str | None:
        shown, length = len(value or ""), self._length_of(name)
        is_cut = shown >= _ROW_ERROR if length is None else shown < length
        return self._access._error(_ERRORS[name], value, _types_of_row(self._row), is_cut=is_cut)

    def _length_of(self, name: str) -> int | None:
        return getattr(self._row, f"{name}_length", None)

    def _is_changed(self, name: str) -> bool:
        return bool(getattr(self, name) != getattr(self._row, name))

    def _shown_length(self, whole: int) -> int:
        """Of headers of which a page has the start it is said still that there are more."""
        shown = len(self.headers or "")
        return shown + 1 if whole > len(self._row.headers or "") else shown


def _types_of_row(row: Any) -> tuple[str, ...]:
    """Of the archive; rows of lists have no headers. The kind of a lease is all of its type."""
    if getattr(row, "kind", "") == "lease":
        return types_of(row.message_type)
    headers, _ = long_headers.read(getattr(row, "headers", None), getattr(row, "headers_length", None))
    return types_told(row.message_type, headers)


_CONTENT = {
    "exception_message", "exception_message_length", "stack_trace", "stack_trace_length", "details", "message",
    "headers_length",
}  # fmt: skip
# by which header's rule each is masked: the original's free text holds what the exception says
_ERRORS = {
    "exception_message": h.EXCEPTION_MESSAGE, "stack_trace": h.EXCEPTION_STACK_TRACE, "details": h.EXCEPTION_MESSAGE,
}  # fmt: skip


def _without_content(text: str | None) -> str | None:
    """Headers with the names of all and the values of FIGURES."""
    try:
        found = h.parse(text)
    except h.HeadersUnreadable:
        return _UNREADABLE
    return h.dump(_hidden(found)) if found else text


def _hidden(headers: h.Headers) -> h.Headers:
    return {name: value if name in FIGURES or value is None else HIDDEN for name, value in headers.items()}


def _is_all_of(text: str, headers: h.Headers) -> bool:
    """Whether no name stands there twice: only its last value has been read."""
    try:
        return bool(json.loads(text, object_pairs_hook=list) == list(headers.items()))
    except (ValueError, RecursionError):
        return False


def _edit(said: Any) -> Any:
    if not isinstance(said, dict) or not isinstance(said.get("headers"), dict):
        return said
    return {**said, "headers": dict.fromkeys(said["headers"], HIDDEN)}


def _named(rules: Iterable[Rule], name: str) -> Rule | None:
    """A trace begins with what its exception says."""
    names = (name, h.EXCEPTION_MESSAGE) if name == h.EXCEPTION_STACK_TRACE else (name,)
    return next((rule for rule in rules if rule.header and any(map(rule.header.fullmatch, names))), None)


def _lease_field(name: str, value: str, rules: Iterable[Rule]) -> str:
    """A text that was cut may end within a hidden part."""
    rules = tuple(rules)
    for rule in rules:
        if rule.path and rule.path.hides((name,)):
            return rule.bar
    looking = next((rule for rule in rules if rule.regex is not None), None)
    if looking and (len(value) >= _LEASE_FIELD or _hides_field(name, value, rules, is_single=True)):
        return looking.bar
    return value


def _hides_field(name: str, value: str, rules: Iterable[Rule], *, is_single: bool) -> bool:
    rules = tuple(rules)
    paths = [rule.path for rule in rules if rule.path]
    if any(path.hides((name,)) if is_single else path.meets((name,)) for path in paths):
        return True
    beside = (value, name, f'"{name}": {value}', f'"{name}": "{value}"')
    return any(texts.masked(each, rules) != each for each in beside)


def _is_searched(rule: Rule, field: str, path: tuple[str, ...]) -> bool:
    """Whether a term may tell what the rule hides."""
    if rule.regex is not None or field == "":
        return True
    if rule.path:
        return field == "body" and (not path or rule.path.hides(path))  # only single values are compared
    if field == "message":
        return _named([rule], h.EXCEPTION_MESSAGE) is not None
    return field == "headers" or (field == "header" and any(_named([rule], name) for name in path))

"""What of messages a person may read: figures always; bodies, header values and what exceptions say by a right.

Parts of these that a masking rule hides are read by a further right, which lasts for minutes and asks for a reason.
"""

import re
from collections.abc import Collection, Mapping
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
from pgqueue_admin.services.masking import fields, headers
from pgqueue_admin.services.masking import rule as masking_rule
from pgqueue_admin.services.masking import text as texts
from pgqueue_admin.services.masking.archived_row import ROW_ERROR, MaskedRow, WithheldRow
from pgqueue_admin.services.masking.body import MaskedBody
from pgqueue_admin.services.masking.message_types import types_of, types_of_row, types_told
from pgqueue_admin.services.masking.rule import Rule, RuleFault, of_types
from pgqueue_admin.services.permissions import missing, refusal_for
from pgqueue_admin.transport.wire import headers as h

_LONGEST_ERROR = 2_000  # characters of what a process says (workers.reporting.metrics)
_RAISED = re.compile(r"(?P<type>[^\W\d][\w.<>$+`]*): ")  # of what a handler raised, as a process keeps it
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
            return ArchivedMessage(WithheldRow(message))
        return ArchivedMessage(MaskedRow(message, self.rules)) if self.rules else message

    def stored(self, message: Stored) -> Stored:
        """Of a queue or a delayed table."""
        if self.refusal:
            text = headers.UNREADABLE if message.unreadable else headers.without_content(message.headers_text)
            return replace(message, headers_text=text, headers_size=None)
        if not headers.looks_into(self.rules):
            return message
        found, said = message.headers, message.headers_text
        text = headers.UNREADABLE if message.unreadable else headers.written(found, said, self.rules)
        return message if text == message.headers_text else replace(message, headers_text=text, headers_size=None)

    def finished(self, message: FinishedMessage) -> FinishedMessage:
        """Masked, its body is left: who draws one asks ``body``."""
        if self.refusal:
            return replace(message, headers=headers.without_content(message.headers), body=None, exception_message=None)
        if not self.rules:
            return message
        types = types_told(message.type, long_headers.read(message.headers, None)[0])
        return replace(
            message,
            headers=headers.masked_text(message.headers, None, self.rules),
            exception_message=headers.error(h.EXCEPTION_MESSAGE, message.exception_message, self.rules, types),
        )

    def lease(self, message: LeaseMessage) -> LeaseMessage:
        """Its kind is its type; the other fields are content."""
        if self.refusal:
            return replace(message, fields={})
        rules = of_types(self.rules, types_of(message.kind))
        shown = {name: fields.shown(name, value, rules) for name, value in message.fields.items()} if rules else {}
        return replace(message, fields=shown) if rules else message

    def failure(self, group: FailureGroup) -> FailureGroup:
        """Not for saving: without the message and the frame that its messages died of."""
        if not (self.refusal or headers.looks_into(self.rules)):
            return group
        shown = copy(group)
        if self.refusal:
            shown.message = shown.frame = ""
        else:
            shown.message = headers.error(h.EXCEPTION_MESSAGE, group.message, self.rules, (), is_folded=True) or ""
            shown.frame = headers.error(h.EXCEPTION_STACK_TRACE, group.frame, self.rules, ()) or ""
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
        if self.refusal or headers.named(self.rules, h.EXCEPTION_STACK_TRACE):
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
        what = (
            ""
            if self.refusal
            else headers.error(h.EXCEPTION_MESSAGE, said[raised.end() :], self.rules, (), is_cut=is_cut)
        )
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
        found, _ = long_headers.read(row.headers, row.headers_length)
        start = BodyStart(None if row.part is None else bytes(row.part), row.is_cut)
        return self.payload(start, found.get(h.CONTENT_TYPE), types_of_row(row))

    def headers(self, found: Mapping[str, str | None], types: Collection[str] | None = None) -> h.Headers:
        """``types``: of which they are; None: as they say themselves."""
        return headers.hidden(dict(found)) if self.refusal else headers.masked(found, self.rules, types)

    def hides_in(self, text: str | None, length: int | None) -> bool:
        """Whether something of these headers may not be taken away as it was written. ``length``: of all of them."""
        return headers.hides_in(text, length, self.rules)

    def error(self, text: str | None, types: Collection[str] = ()) -> str | None:
        """What an exception says, in a list."""
        is_cut = len(text or "") >= ROW_ERROR
        return None if self.refusal else headers.error(h.EXCEPTION_MESSAGE, text, self.rules, types, is_cut=is_cut)

    def hides_header(self, name: str, value: str | None, types: Collection[str] = ()) -> bool:
        return headers.value(name, value, self.rules, types) != value

    def hides_field(self, name: str, value: str, types: Collection[str] = (), *, is_single: bool) -> bool:
        """Of the first level of a JSON body. ``is_single``: no object and no list, which may hold a hidden part."""
        return fields.hides(name, value, of_types(self.rules, types), is_single=is_single)

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

    def _edit_of_many(self, said: Any) -> Any:
        edit = said.get("edit") if isinstance(said, dict) else None
        if not isinstance(edit, dict) or "value" not in edit:
            return said
        part = "header" if "header" in edit else "field"
        is_hidden = self.hides_edited(part, str(edit.get(part, "")))
        return {**said, "edit": {**edit, "value": headers.HIDDEN}} if is_hidden else said

    def _edit(self, said: Any) -> Any:
        """What was typed is of a message whose type is not known any more."""
        if not isinstance(said, dict) or not isinstance(said.get("headers"), dict):
            return said
        return {**said, "headers": self.headers(said["headers"], ())}


REFUSED = f"Reading what messages say {missing('read')}."
ALL = ContentAccess()
NOTHING = ContentAccess(REFUSED)


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


def _keys(path: str) -> tuple[str, ...]:
    """Of a field's path; none, and so everywhere, of what is no path."""
    try:
        return json_field.path_of(path)
    except json_field.PathFault:
        return ()


def _edit(said: Any) -> Any:
    if not isinstance(said, dict) or not isinstance(said.get("headers"), dict):
        return said
    return {**said, "headers": dict.fromkeys(said["headers"], headers.HIDDEN)}


def _is_searched(rule: Rule, field: str, path: tuple[str, ...]) -> bool:
    """Whether a term may tell what the rule hides."""
    if rule.regex is not None or field == "":
        return True
    if rule.path:
        return field == "body" and (not path or rule.path.hides(path))  # only single values are compared
    if field == "message":
        return headers.named([rule], h.EXCEPTION_MESSAGE) is not None
    return field == "headers" or (field == "header" and any(headers.named([rule], name) for name in path))

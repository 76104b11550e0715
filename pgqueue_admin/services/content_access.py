"""What a person may read of messages: figures always; bodies, header values and exception texts with a right.

Parts hidden by a masking rule need a further right. It lasts for minutes and requires a reason.
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

_LONGEST_ERROR = 2_000  # characters of a process's last error (workers.reporting.metrics)
_RAISED = re.compile(r"(?P<type>[^\W\d][\w.<>$+`]*): ")  # of a handler's exception, as a process stores it
MASKED = "Masking rules are in force: the console shows it with their parts hidden."
_SEARCHED = (
    "Searching in what masking rules hide would tell it, letter by letter. Reveal it first, on a message's page."
)

Stored = TypeVar("Stored", bound=StoredMessage)


class Payload(NamedTuple):
    """Fields of a body, by path. ``missing``: in a word or two, why more may exist; empty: none is missing."""

    fields: Mapping[str, str]
    missing: str = ""


@dataclass(frozen=True, slots=True)
class ContentAccess:
    """``refusal``: a sentence naming the missing right; empty: all that ``rules`` do not hide may be read.

    Each method returns its argument without what may not be read. Pages and Django admin read messages through it, so
    templates have nothing to hide. Acts never do: they send what is stored.
    ``revealed_until``: set if rules exist and this person revealed what they hide.
    """

    refusal: str = ""
    rules: tuple[Rule, ...] = ()
    revealed_until: datetime | None = None

    @property
    def withheld(self) -> str:
        """Why texts shown only as a whole are not shown; empty: all may be read."""
        return self.refusal or (MASKED if self.rules else "")

    def archived(self, message: ArchivedMessage) -> ArchivedMessage:
        if self.refusal:
            return ArchivedMessage(WithheldRow(message))
        return ArchivedMessage(MaskedRow(message, self.rules)) if self.rules else message

    def stored(self, message: Stored) -> Stored:
        """Mask a message of a queue or of a delayed table."""
        if self.refusal:
            text = headers.UNREADABLE if message.unreadable else headers.without_content(message.headers_text)
            return replace(message, headers_text=text, headers_size=None)
        if not headers.looks_into(self.rules):
            return message
        found, said = message.headers, message.headers_text
        text = headers.UNREADABLE if message.unreadable else headers.written(found, said, self.rules)
        return message if text == message.headers_text else replace(message, headers_text=text, headers_size=None)

    def finished(self, message: FinishedMessage) -> FinishedMessage:
        """Mask a finished message, except its body: pages mask it with ``body``."""
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
        """Mask a lease message: its kind is its type, its other fields are content."""
        if self.refusal:
            return replace(message, fields={})
        rules = of_types(self.rules, types_of(message.kind))
        shown = {name: fields.shown(name, value, rules) for name, value in message.fields.items()} if rules else {}
        return replace(message, fields=shown) if rules else message

    def failure(self, group: FailureGroup) -> FailureGroup:
        """Hide the exception message and frame of a failure. The copy must not be saved."""
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
        """Mask what was typed in the audit entry of an edit. The copy must not be saved."""
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
        """Mask a mail as it was sent."""
        if self.refusal or headers.named(self.rules, h.EXCEPTION_STACK_TRACE):
            return ""
        return texts.masked(text, self.rules) if self.reads_texts else text

    def line(self, text: str) -> str:
        """Mask a log line: only regular expressions apply to it."""
        return texts.masked(text, self.rules) if self.reads_texts else text

    def process_error(self, process: Process) -> str:
        """Return a process's last error. Of a handler's exception: its type, and its message if that may be read."""
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
        """Whether a rule searches every text."""
        return any(rule.regex is not None for rule in self.rules)

    def masks_bodies(self, types: Collection[str] = ()) -> bool:
        """Whether a rule may hide parts of bodies of these types; none given: of any type."""
        rules = of_types(self.rules, types) if types else self.rules
        return any(rule.header is None for rule in rules)

    def body(self, raw: bytes, content_type: str | None, types: Collection[str]) -> MaskedBody | None:
        """Return the masked body; None if it may be read unchanged. ``raw``: all of it, or one byte above the limit."""
        return bodies.masked(raw, content_type, of_types(self.rules, types))

    def part(self, types: Collection[str]) -> MaskedBody | None:
        """Hide a body of which only a part is stored; None if no rule applies to bodies of its types."""
        rules = [rule for rule in of_types(self.rules, types) if rule.header is None]
        return bodies.of_a_part(rules) if rules else None

    def payload(self, start: BodyStart, content_type: str | None, types: Collection[str]) -> Payload:
        """Return fields for the columns of a list. A cut body yields none if a rule may hide a part of it."""
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
        """Return the payload of a row of ``store.body_starts``."""
        found, _ = long_headers.read(row.headers, row.headers_length)
        start = BodyStart(None if row.part is None else bytes(row.part), row.is_cut)
        return self.payload(start, found.get(h.CONTENT_TYPE), types_of_row(row))

    def headers(self, found: Mapping[str, str | None], types: Collection[str] | None = None) -> h.Headers:
        """``types``: the message's types; None: those named in its headers."""
        return headers.hidden(dict(found)) if self.refusal else headers.masked(found, self.rules, types)

    def hides_in(self, text: str | None, length: int | None) -> bool:
        """Whether a part of these headers is hidden, so their text must not be exported. ``length``: of all headers."""
        return headers.hides_in(text, length, self.rules)

    def error(self, text: str | None, types: Collection[str] = ()) -> str | None:
        """Mask an exception message of a list."""
        is_cut = len(text or "") >= ROW_ERROR
        return None if self.refusal else headers.error(h.EXCEPTION_MESSAGE, text, self.rules, types, is_cut=is_cut)

    def hides_header(self, name: str, value: str | None, types: Collection[str] = ()) -> bool:
        return headers.value(name, value, self.rules, types) != value

    def hides_field(self, name: str, value: str, types: Collection[str] = (), *, is_single: bool) -> bool:
        """Whether a top-level field of a JSON body is hidden. ``is_single``: it is no object or list."""
        return fields.hides(name, value, of_types(self.rules, types), is_single=is_single)

    def hides_edited(self, part: str, name: str) -> bool:
        """Whether values of this header or field, typed in an edit of many messages, may not be read."""
        return bool(
            self.search_refusal("header", (name,)) if part == "header" else self.search_refusal("body", _keys(name))
        )

    def search_refusal(self, field: str, path: tuple[str, ...]) -> str:
        """Why this search is refused; empty: it is allowed. ``field``: empty for everywhere.

        Rules of all types count: a result per message would reveal what is hidden in it.
        """
        if field == "conversation":  # an id is searched for
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
        """Mask typed headers for all types: the message's type is not known any more."""
        if not isinstance(said, dict) or not isinstance(said.get("headers"), dict):
            return said
        return {**said, "headers": self.headers(said["headers"], ())}


REFUSED = f"Reading what messages say {missing('read')}."
ALL = ContentAccess()
NOTHING = ContentAccess(REFUSED)


def of(person: Any) -> ContentAccess:
    """Return the access of a person. It is read once per user object, that is once per request."""
    if refusal_for(person, "read"):
        return NOTHING
    if isinstance(person, str):
        return ALL  # a user of the command line
    known = getattr(person, "_content_access", None)
    if known is None:
        known = person._content_access = _of_reader(person)
    return known


def of_everybody() -> ContentAccess:
    """Access for readers without an account: recipients of mails."""
    return _by_rules()


def _of_reader(person: Any) -> ContentAccess:
    masked = _by_rules()
    if not masked.rules or refusal_for(person, "reveal"):
        return masked
    asked = MaskingReveal.objects.filter(person=person, ends_at__gt=database_clock.now()).first()
    return ContentAccess(revealed_until=asked.ends_at) if asked else masked


def _by_rules() -> ContentAccess:
    """Access by masking rules. If this version cannot read a rule, nothing is shown: what it hides is unknown."""
    try:
        return ContentAccess(rules=tuple(of_row(each) for each in MaskingRule.objects.all()))
    except RuleFault as fault:
        return ContentAccess(f"A masking rule cannot be read, so nothing is shown. {fault}")


def of_row(row: MaskingRule) -> Rule:
    """Raises RuleFault."""
    types = row.types if isinstance(row.types, list) else [row.types]
    return masking_rule.ready(row.name, row.kind, row.pattern, tuple(map(str, types)))


def _keys(path: str) -> tuple[str, ...]:
    """Return the keys of a field's path; none, which means everywhere, if it is no path."""
    try:
        return json_field.path_of(path)
    except json_field.PathFault:
        return ()


def _edit(said: Any) -> Any:
    if not isinstance(said, dict) or not isinstance(said.get("headers"), dict):
        return said
    return {**said, "headers": dict.fromkeys(said["headers"], headers.HIDDEN)}


def _is_searched(rule: Rule, field: str, path: tuple[str, ...]) -> bool:
    """Whether a search may reveal what the rule hides."""
    if rule.regex is not None or field == "":
        return True
    if rule.path:
        return field == "body" and (not path or rule.path.hides(path))  # searches compare only single values
    if field == "message":
        return headers.named([rule], h.EXCEPTION_MESSAGE) is not None
    return field == "headers" or (field == "header" and any(headers.named([rule], name) for name in path))

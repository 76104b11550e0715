"""The form Edit and retry: parsed, checked, and compared with the original."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256

from django.http import QueryDict

from pgqueue_admin.archive import dead_messages
from pgqueue_admin.archive.edited_retry import EditedMessage
from pgqueue_admin.archive.message_edit import is_locked
from pgqueue_admin.console.messages.edit import changes, editable_body
from pgqueue_admin.console.messages.edit.changes import ChangedLine
from pgqueue_admin.console.messages.edit.editable_body import EditableBody
from pgqueue_admin.dialects import Address
from pgqueue_admin.formatting import escape_invisible
from pgqueue_admin.transport.wire.headers import Headers

MOST_HEADERS = 200
BLANK = 2  # rows for headers that are added
_LONGEST_NAME = 200
OTHER_SHAPE = "What may be seen of it has changed since this page was opened: it begins anew."


@dataclass(frozen=True)
class HeaderField:
    """A header that a person may edit. ``was``: its old value; None if it is added here."""

    name: str
    value: str
    was: str | None = None
    dropped: bool = False


@dataclass(frozen=True)
class EditDraft:
    """``text``: the body as typed. ``kept``: own headers that the form leaves out, sent unchanged."""

    body: EditableBody
    text: str
    headers: Sequence[HeaderField]
    kept: Mapping[str, str | None]
    target: Address | None
    target_text: str
    reason: str
    faults: tuple[str, ...] = field(default=())

    @cached_property
    def own(self) -> dict[str, str | None]:
        """All own headers, as they will be sent."""
        typed = {each.name: each.value for each in self.headers if each.name and not each.dropped}
        return {**self.kept, **typed}

    @property
    def sent(self) -> EditedMessage:
        return EditedMessage(self.own, self.body.sent(self.text))

    @cached_property
    def fault_of_body(self) -> str:
        return editable_body.fault(self.text, self.body.kind) if self.body.shown is not None else ""

    @cached_property
    def body_changes(self) -> list[ChangedLine] | None:
        if self.body.shown is None or self.sent.body is None:
            return []
        before, after = (editable_body.lines(each, self.body.kind) for each in (self.body.stored, self.text))
        return changes.of_lines(before, after)

    @cached_property
    def header_changes(self) -> list[ChangedLine]:
        was = {each.name: each.was for each in self.headers if each.was is not None}
        return changes.of_headers({**self.kept, **was}, self.own)

    @property
    def changed_lines(self) -> list[ChangedLine]:
        """Changed lines of body and headers, each under its heading."""
        found: list[ChangedLine] = []
        if self.body_changes is None:
            found.append(ChangedLine("", "body: too long to be compared line by line"))
        elif self.sent.body is not None:
            found += [ChangedLine("", "body" if self.body_changes else "body: its layout alone"), *self.body_changes]
        return found + ([ChangedLine("", "headers"), *self.header_changes] if self.header_changes else [])

    @property
    def hides(self) -> bool:
        """Whether the form leaves out headers that it could hold."""
        return any(_is_typed(name, value) for name, value in self.kept.items())

    @property
    def shape(self) -> str:
        """Identifies the form's fields: values of another form would go to the wrong ones."""
        shown = json.dumps([self.body.shown is None, *(each.name for each in self.headers if each.was is not None)])
        return sha256(shown.encode()).hexdigest()[:16]

    @property
    def changes_nothing(self) -> bool:
        return self.sent.body is None and not self.header_changes

    @property
    def added_rows(self) -> list[HeaderField]:
        """Added headers, and empty rows for more."""
        added = [each for each in self.headers if each.was is None]
        return added + [HeaderField("", "")] * max(0, BLANK - len(added))


def own_headers(
    headers: Headers, is_hidden: Callable[[str, str | None], bool]
) -> tuple[list[HeaderField], dict[str, str | None]]:
    """Headers that fit one line of a form, and the others: long ones, and those that a rule hides."""
    own = {name: value for name, value in headers.items() if not is_locked(name)}
    held = {name: value or "" for name, value in own.items() if _is_typed(name, value) and not is_hidden(name, value)}
    fields = [HeaderField(name, value, value) for name, value in held.items()][:MOST_HEADERS]
    names = {each.name for each in fields}
    return fields, {name: value for name, value in own.items() if name not in names}


def begun(
    headers: str | None,
    body: EditableBody,
    target: Address | None,
    name: str,
    is_hidden: Callable[[str, str | None], bool],
) -> EditDraft:
    """The draft before any edit. Raises HeadersUnreadable."""
    fields, kept = own_headers(dead_messages.kept_headers(headers), is_hidden)
    return EditDraft(body, body.shown or "", fields, kept, target, name, "")


def typed(before: EditDraft, data: QueryDict, target: Address | None) -> EditDraft:
    """``target``: the chosen name, parsed."""
    if data.get("shape", before.shape) != before.shape:
        return replace(before, faults=(OTHER_SHAPE,))
    values = data.getlist("value")[: len(before.headers) + BLANK]
    dropped = set(data.getlist("drop"))
    fields = [
        HeaderField(was.name, _line(value), was.was, was.name in dropped)
        for was, value in zip(before.headers, values, strict=False)
    ]
    fields += before.headers[len(fields) :]
    names = data.getlist("name")[:BLANK]
    added = [
        HeaderField(_line(n).strip(), _line(v)) for n, v in zip(names, values[len(before.headers) :], strict=False)
    ]
    added = [each for each in added if each.name or each.value]
    text = data.get("body", before.text).replace("\0", "")
    faults = tuple(_faults([*before.headers, *added], added, before.kept))
    reason = data.get("reason", "").strip()[:1000]
    return EditDraft(before.body, text, [*fields, *added], before.kept, target, data.get("to", ""), reason, faults)


def _faults(
    fields: Sequence[HeaderField], added: Sequence[HeaderField], kept: Mapping[str, str | None]
) -> Sequence[str]:
    known = [each.name for each in fields] + list(kept)
    found = []
    for each in added:
        if not each.name:
            found.append(f"The value “{each.value}” has no header's name before it.")
        elif is_locked(each.name):
            found.append(f"{each.name} is read by programs: headers of that kind cannot be typed here.")
        elif known.count(each.name) > 1:
            found.append(f"There is a header {each.name} already: change its value instead.")
        elif len(each.name) > _LONGEST_NAME or not _fits(each.name):
            found.append(f"{each.name[:50]} is no name: use at most {_LONGEST_NAME} visible characters.")
    return found


def _is_typed(name: str, value: str | None) -> bool:
    return value is not None and _fits(name) and _fits(value)


def _fits(text: str) -> bool:
    return len(text) <= 2000 and "\n" not in text and "\r" not in text and not escape_invisible.has_any(text)


def _line(text: str) -> str:
    return text.replace("\0", "")[:2000]

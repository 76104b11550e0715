"""Changes one header or one JSON body field in many dead messages, and nothing else."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from pgqueue_admin.formatting import body_views, escape_invisible, json_field, json_tokens
from pgqueue_admin.transport.wire import headers as h

MOST_BYTES = 500_000  # of a body to edit
LOCKED = ("NServiceBus.", "ServiceControl.", "Pgqueue.", "$.diagnostics.", "traceparent", "tracestate", "baggage")
BOM = b"\xef\xbb\xbf"
LONGEST = 2_000  # characters of a value
_LONGEST_NAME = 200
_CHARSET = re.compile(r"""\bcharset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_UTF8 = {"utf-8", "utf8", "us-ascii", "ascii"}
PARTS = ("header", "field")
WAYS = ("set", "add", "replace", "remove")


def is_locked(name: str) -> bool:
    """Whether programs read this header: it is kept, regenerated or removed, never edited."""
    return name.startswith(LOCKED)


def why_locked(name: str) -> str:
    """How a retry treats this locked header."""
    return {
        h.MESSAGE_ID: "a new id, so that receivers do not take it for a duplicate",
        h.TIME_SENT: "set anew: it is a new message",
        h.CONVERSATION_ID: "kept, so that the story stays whole",
        h.ENCLOSED_MESSAGE_TYPES: "kept: it decides the handler",
    }.get(name, "kept")


@dataclass(frozen=True, slots=True)
class MessageEdit:
    """``way``: set an existing one; add: set or create; replace if it equals ``old``; remove.

    ``is_json``: ``old`` and ``new`` of a field are JSON; otherwise texts.
    """

    part: str
    name: str
    way: str
    new: str = ""
    old: str = ""
    is_json: bool = False

    def fault(self) -> str:
        """Why the edit is invalid, as a sentence; empty: valid."""
        if self.part not in PARTS or self.way not in WAYS:
            return "Choose a header or a field, and what becomes of it."
        return self._fault_of_name() or self._fault_of("new") or self._fault_of("old")

    def _fault_of_name(self) -> str:
        if not self.name or len(self.name) > _LONGEST_NAME or not _fits(self.name):
            return f"Name the {self.part}: at most {_LONGEST_NAME} visible characters."
        if self.part == "header":
            locked = f"{self.name} is read by programs: headers of that kind are kept, set anew or taken off."
            return locked if is_locked(self.name) else ""
        try:
            path = self.path
        except json_field.PathFault as fault:
            return f"“{self.name}” is no path: {fault}"
        is_element = self.way == "add" and path[-1].isdigit()
        return "An element of a list is set, replaced or removed, never added." if is_element else ""

    def _fault_of(self, which: str) -> str:
        value = getattr(self, which)
        if (which == "new" and self.way == "remove") or (which == "old" and self.way != "replace"):
            return ""
        if len(value) > LONGEST or not _fits(value):
            return f"The {which} value is one line of at most {LONGEST:,} visible characters."
        if self.part == "field" and self.is_json:
            if fault := json_field.literal_fault(value):
                return f"The {which} value: {fault}"
            if which == "old" and json_field.kind(value) in ("object", "list"):
                return "The old value is one value: objects and lists are not compared."
        return ""

    @property
    def path(self) -> json_field.Path:
        """Raises PathFault."""
        return json_field.path_of(self.name)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Edited(NamedTuple):
    """The message's unlocked headers after the edit; ``body`` None: unchanged. ``was`` and ``now``: the edited value,
    None: absent. ``new_kind``: its JSON type changed."""

    headers: Mapping[str, str | None]
    body: bytes | None
    was: str | None
    now: str | None
    new_kind: bool = False


class NotEdited(NamedTuple):
    """``what``: lacks, other, same, unread. ``why``: a sentence."""

    what: str
    why: str

    @property
    def result(self) -> str:
        """The operation item's result; the message stays dead in any case."""
        return "failed" if self.what == "unread" else "skipped"


def of_headers(edit: MessageEdit, own: Mapping[str, str | None]) -> Edited | NotEdited:
    name, was = edit.name, own.get(edit.name)
    if name not in own and edit.way != "add":
        return NotEdited("lacks", f"It has no header {name}.")
    if edit.way == "replace" and was != edit.old:
        return NotEdited("other", f"Its header {name} has another value.")
    if edit.way == "remove":
        return Edited({each: value for each, value in own.items() if each != name}, None, was, None)
    if name in own and was == edit.new:
        return NotEdited("same", f"Its header {name} has that value.")
    return Edited({**own, name: edit.new}, None, was, edit.new)


def of_body(
    edit: MessageEdit, own: Mapping[str, str | None], raw: bytes | None, content_type: str | None
) -> Edited | NotEdited:
    """``raw`` may have one byte more than the limit: then it is too long."""
    text = _text(raw, content_type)
    if isinstance(text, NotEdited):
        return text
    try:
        found = json_field.find(text, edit.path)
        changed = _changed(edit, text, found)
    except json_field.FieldTwice:
        return NotEdited("unread", f"Its body has {edit.name} twice, and readers take one or the other.")
    except json_tokens.NotJson:
        return NotEdited("unread", "Its body is no JSON.")
    if isinstance(changed, NotEdited):
        return changed
    assert raw is not None
    after, was, now = changed
    body = (BOM if raw.startswith(BOM) else b"") + after.encode()
    kinds = {json_field.kind(each) for each in (was, now) if each is not None}
    return Edited(own, body, was, now, len(kinds - {"null"}) > 1)


def _changed(
    edit: MessageEdit, text: str, found: json_field.FoundField
) -> tuple[str, str | None, str | None] | NotEdited:
    """The text after the edit, and the value before and after."""
    at, new = found.field, _written(edit, text, edit.new)
    if at is None:
        if edit.way == "add" and found.parent:
            return json_field.with_field(text, found, edit.path[-1], new), None, new
        return NotEdited("lacks", f"Its body has no {edit.name}.")
    was = text[at.value : at.end]
    if edit.way == "replace" and not json_field.is_same(was, _written(edit, text, edit.old)):
        return NotEdited("other", f"{edit.name} of its body has another value.")
    if edit.way == "remove":
        return json_field.without(text, at), was, None
    if _is_plain(was) and _is_plain(new) and json_field.is_same(was, new):
        return NotEdited("same", f"{edit.name} of its body has that value.")
    return json_field.with_value(text, at, new), was, new


def _is_plain(value: str) -> bool:
    return json_field.kind(value) not in ("object", "list")


def _written(edit: MessageEdit, text: str, value: str) -> str:
    return value.strip() if edit.is_json else json_field.quoted(text, value)


def _text(raw: bytes | None, content_type: str | None) -> str | NotEdited:
    if raw is None:
        return NotEdited("unread", "Its body is NULL: put back, it would wedge the queue.")
    if len(raw) > MOST_BYTES:
        return NotEdited("unread", f"Its body has more than {MOST_BYTES:,} bytes.")
    said = _CHARSET.search(content_type or "")
    if said and said[1].lower() not in _UTF8:
        return NotEdited("unread", f"It says that its body is {said[1]}, and what is written here is UTF-8.")
    try:
        text = raw.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError:
        return NotEdited("unread", "Its body is no UTF-8 text.")
    kind = body_views.kind_of(raw, content_type)
    return text if kind in ("JSON", "text") else NotEdited("unread", "Its body is no JSON.")


def new_id(seed: str, archive_id: int) -> str:
    """Message id of the edited message. Derived from the operation's seed, so that nothing is stored per message; the
    statement ``edited_id`` computes the same."""
    return str(UUID(sha256(f"{seed}:{archive_id}".encode()).hexdigest()[:32]))


def _fits(text: str) -> bool:
    return "\n" not in text and "\r" not in text and not escape_invisible.has_any(text)

"""A retry that edits one header or one field of each message: proposed, previewed, and run as previewed."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import uuid4

from pgqueue_admin.archive import dead_messages
from pgqueue_admin.archive.edited_retry import ManyEdits
from pgqueue_admin.archive.message_edit import Edited, MessageEdit, NotEdited, new_id
from pgqueue_admin.archive.messages import MOST_HEADERS
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Operation
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.masking.message_types import types_of
from pgqueue_admin.services.operations.errors import AlreadyDecided, OperationNotAllowed, OperationRefused
from pgqueue_admin.services.permissions import name_of, refusal_for
from pgqueue_admin.transport.wire import headers as h

SAMPLES = 3
LOOKS_FOR = 2.0  # seconds of a preview: a set may have any size
_PAGE = 200
_HIDDEN = "Masking rules hide what would be changed. Reveal it first, then it can be."
_NOTHING = "Nothing was changed"


class OperationEdit(NamedTuple):
    """``seed``: of the new messages' ids. ``sees_hidden``: the proposer had revealed what rules hide."""

    edit: MessageEdit
    seed: str
    sees_hidden: bool


def of(operation: Operation) -> OperationEdit | None:
    kept = operation.edit
    return OperationEdit(MessageEdit(**kept["edit"]), kept["seed"], kept["sees_hidden"]) if kept else None


def seen(operation: Operation) -> str:
    """Return a digest that a form carries, so that only the previewed edit is run; empty: no edit."""
    return sha256(json.dumps(operation.edit, sort_keys=True).encode()).hexdigest()[:16] if operation.edit else ""


def propose(pk: int, edit: MessageEdit | None, person: Any) -> Operation:
    """Set the edit of a frozen retry; None: messages are sent unchanged. Sends nothing yet. Raises OperationRefused."""
    for verb in (Operation.Kind.RETRY, "read"):
        if refusal := refusal_for(person, verb):
            raise OperationNotAllowed(f"{_NOTHING}: it {refusal}.")
    if edit and (fault := edit.fault()):
        raise OperationRefused(f"{_NOTHING}. {fault}")
    access = content_access.of(person)
    if access.refusal:
        raise OperationNotAllowed(f"{_NOTHING}. {access.refusal}")
    sees = bool(access.revealed_until) or access is content_access.ALL
    kept = {"edit": edit.as_dict(), "seed": str(uuid4()), "sees_hidden": sees, "by": name_of(person)} if edit else None
    asked = Operation.objects.filter(pk=pk, state=Operation.State.FROZEN, kind=Operation.Kind.RETRY)
    if not asked.update(edit=kept):
        raise AlreadyDecided(f"{_NOTHING}: only a retry that is not started can be changed.")
    return Operation.objects.get(pk=pk)


def editing(operation: Operation) -> dead_messages.Editing | None:
    """Return how a chunk edits messages; None: not at all."""
    found = of(operation)
    if found is None:
        return None
    access = content_access.ALL if found.sees_hidden else content_access.of_everybody()
    return many(found.edit, found.seed, access)


def many(edit: MessageEdit, seed: str, access: ContentAccess) -> ManyEdits:
    def hides(row: Any, headers: h.Headers, raw: bytes | None) -> str:
        if access.refusal:
            return access.refusal
        types = types_of(row.message_type, headers.get(h.ENCLOSED_MESSAGE_TYPES))
        if edit.part == "header":
            return _HIDDEN if access.hides_header(edit.name, headers.get(edit.name), types) else ""
        content_type = headers.get(h.CONTENT_TYPE)
        is_hidden = access.masks_bodies(types) and access.body(raw or b"", content_type, types) is not None
        return _HIDDEN if is_hidden else ""

    return ManyEdits(edit, seed, hides)


def sent_as(operation: Operation, archive_id: int) -> str:
    """Return the id of the edited message sent in place of a transport message; empty: there was no edit."""
    found = of(operation)
    return new_id(found.seed, archive_id) if found else ""


def said(found: OperationEdit) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the audit's before and after. ContentAccess.entry hides the values from people who may not read them."""
    edit, where = found.edit, {found.edit.part: found.edit.name}
    before = {"edit": {**where, "value": edit.old}} if edit.way == "replace" else None
    value = {} if edit.way == "remove" else {"value": edit.new}
    return before, {"edit": {**where, "way": edit.way, **value, "json": edit.is_json}}


class EditSample(NamedTuple):
    """``raw``: the body before the edit, if the edit changes it."""

    row: Any
    edited: Edited
    raw: bytes | None


@dataclass(slots=True)
class EditLook:
    """Preview of an edit. ``counts``: messages by outcome: changed, lacks, other, same, unread. ``whys``: of unread
    ones.
    ``looked_at``: messages previewed; the others are judged on sending. ``new_kinds``: values whose kind changes.
    """

    counts: Counter[str] = field(default_factory=Counter)
    whys: Counter[str] = field(default_factory=Counter)
    samples: list[EditSample] = field(default_factory=list)
    new_kinds: int = 0

    @property
    def looked_at(self) -> int:
        return sum(self.counts.values())


def look(connection: Connection, operation: Operation, edit: MessageEdit, access: ContentAccess) -> EditLook:
    """Preview the edit with the function that applies it. Reads for LOOKS_FOR seconds at most."""
    found, ends = EditLook(), time.monotonic() + LOOKS_FOR
    of_many = many(edit, "", access)
    for rows in _pages(connection, operation):
        for batch in of_many.each(connection, rows):
            for row, raw, edited in batch:
                _count(found, row, raw, edited)
            if time.monotonic() > ends:
                return found
    return found


def _count(found: EditLook, row: Any, raw: bytes | None, edited: Edited | NotEdited) -> None:
    if isinstance(edited, NotEdited):
        found.counts[edited.what] += 1
        if edited.what == "unread":
            found.whys[edited.why] += 1
        return
    found.counts["changed"] += 1
    found.new_kinds += edited.new_kind
    if len(found.samples) < SAMPLES:
        found.samples.append(EditSample(row, edited, raw))


def _pages(connection: Connection, operation: Operation) -> Iterator[list[Any]]:
    state = "discarded" if operation.restores else "dead"
    position = 0
    while True:
        asked = {"operation_id": operation.pk, "after": position, "state": state, "limit": _PAGE, "most": MOST_HEADERS}
        rows = connection.all(postgresql().operation.to_edit(), asked)
        if not rows:
            return
        yield rows
        position = rows[-1].position

"""Bulk edit of one header or field: the form's values, and a preview on the frozen set."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pgqueue_admin.archive import dead_messages
from pgqueue_admin.archive.message_edit import BOM, Edited, MessageEdit, is_locked, why_locked
from pgqueue_admin.console.messages.edit import changes, editable_body
from pgqueue_admin.console.messages.edit.changes import ChangedLine
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting import edit_words
from pgqueue_admin.models import Operation
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.operations import edits
from pgqueue_admin.services.operations.edits import EditLook, EditSample
from pgqueue_admin.transport.wire import headers as h

WAYS = {
    "set": "set, where there is one",
    "add": "set, also where there is none",
    "replace": "replace, where it is this value",
    "remove": "take out",
}


def given(posted: Mapping[str, str]) -> MessageEdit:
    """Read the form without checks: ``fault`` checks it."""
    texts = {name: posted.get(name, "").replace("\0", "") for name in ("part", "name", "way", "new", "old")}
    return MessageEdit(**{**texts, "name": texts["name"].strip()}, is_json=bool(posted.get("json")))


def words(edit: MessageEdit, access: ContentAccess) -> str:
    is_hidden = access.hides_edited(edit.part, edit.name)
    return edit_words.said(edit.part, edit.name, edit.way, edit.old, edit.new, is_hidden=is_hidden)


class ShownSample(NamedTuple):
    archive_id: int
    message_type: str | None
    lines: list[ChangedLine]


@dataclass(frozen=True)
class ShownLook:
    """``rest``: number of messages that were not previewed."""

    edit: MessageEdit
    look: EditLook
    rest: int

    @property
    def counts(self) -> list[tuple[str, int, str]]:
        """Class, number and words: of changed messages, and of each other class that is not zero."""
        said = {name: word.format(part=self.edit.part) for name, word in edit_words.COUNTED.items()}
        return [
            (name, self.look.counts[name], said[name]) for name in said if name == "changed" or self.look.counts[name]
        ]

    @property
    def whys(self) -> list[tuple[str, int]]:
        return self.look.whys.most_common(5)

    @property
    def samples(self) -> list[ShownSample]:
        return [ShownSample(each.row.id, each.row.message_type, _lines(self.edit, each)) for each in self.look.samples]


def looked(connection: Connection, operation: Operation, edit: MessageEdit, access: ContentAccess) -> ShownLook:
    found = edits.look(connection, operation, edit, access)
    return ShownLook(edit, found, max(0, operation.count - found.looked_at))


def _lines(edit: MessageEdit, sample: EditSample) -> list[ChangedLine]:
    edited: Edited = sample.edited
    if edit.part == "header":
        was = {} if edited.was is None and edit.way == "add" else {edit.name: edited.was}
        now = {} if edit.way == "remove" else {edit.name: edited.now}
        return changes.of_headers(was, now)
    before, after = (
        editable_body.lines(raw.removeprefix(BOM).decode("utf-8", "replace"), "JSON")
        for raw in (sample.raw or b"", edited.body or b"")
    )
    found = changes.of_lines(before, after)
    return found if found is not None else [ChangedLine("−", edited.was or ""), ChangedLine("+", edited.now or "")]


class KnownNames(NamedTuple):
    """Headers of the set's first message: editable ones, and locked ones with the reason."""

    own: list[str]
    locked: list[tuple[str, str]]


def names(headers: str | None) -> KnownNames:
    try:
        kept = dead_messages.kept_headers(headers)
    except h.HeadersUnreadable:
        return KnownNames([], [])
    own = [name for name in kept if not is_locked(name)]
    return KnownNames(own, [(name, why_locked(name)) for name in kept if is_locked(name)])

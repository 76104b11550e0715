"""The body on a message's page: the view, the offset, and where the rest is."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

from pgqueue_admin.console.messages.detail.summary import MessageSummary
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting import body_views
from pgqueue_admin.formatting.body_views import BodyPart
from pgqueue_admin.history.storage.message_lookup import FinishedMessage
from pgqueue_admin.monitor import bodies
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.masking.body import MOST, MaskedBody

WORDS = {"pretty": "Pretty", "raw": "Raw", "hex": "Hex", "bodystring": "BodyString"}

Asked = Mapping[str, str]
BodyString = Callable[[int], bodies.BodyString | None]  # offset → text
Read = Callable[[int, int], bytes | None]  # offset, length → bytes; None if the body is NULL
Mask = Callable[[bytes, str | None], MaskedBody | None]  # whole body, content type → masked body
MASKABLE = ("pretty", "raw")  # the other views would show what is hidden


@dataclass(frozen=True, slots=True)
class ShownBody:
    """The Body section. ``part``: None if there is nothing to draw; ``source``: where a bodystring is from.

    ``withheld``: why it may not be read. ``is_masked``: parts are hidden, so it cannot be downloaded.
    """

    part: BodyPart | None
    view: str
    source: str = ""
    withheld: str = ""
    is_masked: bool = False

    @property
    def views(self) -> list[tuple[str, str]]:
        return [(name, word) for name, word in WORDS.items() if not self.is_masked or name in MASKABLE]

    @property
    def next_view(self) -> str:
        """The view that the shortcut key switches to, in a cycle."""
        names = [name for name, _ in self.views]
        return names[(names.index(self.view) + 1) % len(names)]


def of_waiting(connection: Connection, table: QueueTable, facts: MessageSummary, asked: Asked) -> ShownBody:
    """The body of a message that waits in a table of its endpoint."""
    row_id = facts.row_id
    assert row_id is not None

    def read(start: int, length: int) -> bytes | None:
        found = bodies.body(connection, table, row_id, start, length, facts.seq)
        return found.part if found else None

    def bodystring(start: int) -> bodies.BodyString | None:
        return bodies.bodystring(connection, table, row_id, offset=start, seq=facts.seq)

    if mask_of(facts.access, facts.types):  # no rule covers the column bodystring, which others write
        return of_copy(read, facts.body_size, facts.content_type, asked, facts.access, facts.types)
    return shown(read, bodystring, facts.body_size, facts.content_type, asked, facts.withheld, None)


def of_finished(message: FinishedMessage, facts: MessageSummary, asked: Asked) -> ShownBody:
    """The body of a message in history, as far as it is kept."""
    kept = message.body
    if kept is None:
        return ShownBody(None, "")
    if message.why_no_body and (hidden := facts.access.part(facts.types)):
        return _masked(hidden, facts.content_type, asked)

    def read(start: int, length: int) -> bytes:
        return kept[start : start + length]

    return of_copy(read, len(kept), facts.content_type, asked, facts.access, facts.types)


def of_copy(
    read: Read,
    size: int | None,
    content_type: str | None,
    asked: Asked,
    access: ContentAccess,
    types: Collection[str],
) -> ShownBody:
    """A body outside endpoints' tables: it has no column ``bodystring``."""

    def bodystring(start: int) -> bodies.BodyString | None:
        raw = read(start, bodies.PART)
        return None if raw is None else bodies.decoded(raw, size or 0, start)

    return shown(read, bodystring, size, content_type, asked, access.refusal, mask_of(access, types))


def mask_of(access: ContentAccess, types: Collection[str]) -> Mask | None:
    """None if no rule applies to bodies of these types."""
    return partial(access.body, types=types) if access.masks_bodies(types) else None


def shown(
    read: Read,
    bodystring: BodyString,
    size: int | None,
    content_type: str | None,
    asked: Asked,
    withheld: str,
    mask: Mask | None,
) -> ShownBody:
    """The part that ``?body=…&from=…`` requests; invalid values fall back to the start, in the view that suits."""
    view = asked.get("body", "")
    if size is None or withheld:
        return ShownBody(None, view, withheld=withheld)
    if mask and (hidden := mask(read(0, MOST + 1) or b"", content_type)):
        return _masked(hidden, content_type, asked)
    start = _offset(asked.get("from", ""), size)
    if view == "bodystring":
        return _bodystring(bodystring(start), start, size)
    raw = read(start, body_views.CHUNK) or b""
    part = body_views.part(raw, start=start, total=size, content_type=content_type, view=view)
    return ShownBody(part, part.view)


def _masked(hidden: MaskedBody, content_type: str | None, asked: Asked) -> ShownBody:
    """Masked content in a text view, page by page."""
    view = asked.get("body", "")
    if hidden.content is None:
        return ShownBody(None, view, withheld=hidden.hidden, is_masked=True)
    total = len(hidden.content)
    start = _offset(asked.get("from", ""), total)
    view = view if view in MASKABLE else ""
    part = body_views.part(
        hidden.content[start:][: body_views.CHUNK], start=start, total=total, content_type=content_type, view=view
    )
    return ShownBody(part, part.view, is_masked=True)


def _bodystring(found: bodies.BodyString | None, start: int, size: int) -> ShownBody:
    if found is None:
        return ShownBody(None, "bodystring")
    column, ours = "from the column bodystring, its octal escapes read as UTF-8", "decoded by this console"
    part = body_views.readable(found.text, start, start + found.used, size)
    return ShownBody(part, "bodystring", column if found.from_column else ours)


def _offset(text: str, size: int) -> int:
    return parse_int(text, size - 1) or 0

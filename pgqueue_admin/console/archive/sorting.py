"""The sort order of the archive's list, as a URL parameter: ``sort=-size``."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from pgqueue_admin.archive import sorted_page, store
from pgqueue_admin.archive.messages import ArchivedMessage, ArchiveFilter
from pgqueue_admin.archive.sorted_page import SortedKey
from pgqueue_admin.console import pagination
from pgqueue_admin.console.archive import cursors, window
from pgqueue_admin.dialects import Connection

WORDS = {  # the column's word, and its two directions: the first press, the second
    "age": ("Died", ("age", "newest first"), ("-age", "oldest first")),
    "sent": ("Sent", ("-sent", "newest first"), ("sent", "oldest first")),
    "size": ("Size", ("-size", "largest first"), ("size", "smallest first")),
}
SORTS = {name for _, *ways in WORDS.values() for name, _ in ways}
NEWEST = "age"  # the youngest first: the default


@dataclass(frozen=True)
class Listed:
    """A page's rows, and the cursors of its neighbours.

    ``window_from``: if only the newest messages were sorted, since when they died.
    """

    messages: list[ArchivedMessage]
    after: str
    before: str
    window_from: datetime | None = None


@dataclass(frozen=True)
class SortLink:
    """``way``: the direction in words, if the page is sorted by this; ``to``: the sort order after a press."""

    word: str
    way: str
    to: str


def read(given: str | None) -> str:
    """An unknown value falls back to the default."""
    return given if given in SORTS else NEWEST


def links(sort: str) -> list[SortLink]:
    found = []
    for word, *ways in WORDS.values():
        way = dict(ways).get(sort, "")
        found.append(SortLink(word, way, ways[1][0] if sort == ways[0][0] else ways[0][0]))
    return found


def page(connection: Connection, asked: ArchiveFilter, sort: str, given: Any, rows: int) -> Listed:
    """``given``: the query parameters, with the cursors ``after`` and ``before``."""
    by, most_first = sort.removeprefix("-"), sort.startswith("-")
    after, before = given.get("after"), given.get("before")
    if by == "age":
        at, back = cursors.read(after), cursors.read(before)
        found = store.page(connection, asked, at, rows, before=back, oldest_first=most_first)
        return Listed(found.messages, cursors.packed(found.after), cursors.packed(found.before))
    key, back_key = _key(after), _key(before)
    cap = settings.PGQUEUE["CAP"]
    shown = sorted_page.page(connection, asked, by, key, rows, cap=cap, before=back_key, most_first=most_first)
    return Listed(shown.messages, _packed(shown.after), _packed(shown.before), shown.window_from)


def _packed(key: SortedKey | None) -> str:
    return pagination.pack(*key) if key else ""


def _key(cursor: str | None) -> SortedKey | None:
    """None for a cursor that no page of ours wrote."""
    match pagination.unpack(cursor):
        case [str(value), int(seq), str(top_at), int(top_seq)] if (
            _is_number(value) and window.is_time(top_at) and abs(seq) < 2**63 and abs(top_seq) < 2**63
        ):
            return SortedKey(value, seq, top_at, top_seq)
    return None


def _is_number(text: str) -> bool:
    """Whether this is a number as the database writes it: without spaces and underscores."""
    try:
        return text.isascii() and "_" not in text and text.strip() == text and not math.isnan(float(text))
    except ValueError:
        return False

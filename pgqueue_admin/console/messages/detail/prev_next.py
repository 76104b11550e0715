"""The messages before and after one in the list that it was opened from."""

from dataclasses import replace
from typing import NamedTuple

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchivedMessage, ArchiveFilter
from pgqueue_admin.archive.search_terms import Lane
from pgqueue_admin.console.archive import search
from pgqueue_admin.dialects import Connection
from pgqueue_admin.services.content_access import ContentAccess

NEAREST = 2_000  # rows on each side whose texts are read


class PrevNext(NamedTuple):
    """Archive ids, and the search that they belong to."""

    newer: int | None
    older: int | None
    q: str


def of(connection: Connection, message: ArchivedMessage, q: str | None, access: ContentAccess) -> PrevNext | None:
    """None unless it was opened from a list. A text search covers only the nearest messages."""
    query = search.read(q, access)
    if q is None or query.error:
        return None
    older = store.page(connection, _near(query.filter, message, "all"), after=message.key, limit=1).messages
    newer = store.page(connection, _near(query.filter, message, "after"), before=message.key, limit=1).messages
    return PrevNext(newer[0].id if newer else None, older[0].id if older else None, q)


def _near(asked: ArchiveFilter, message: ArchivedMessage, which: str) -> ArchiveFilter:
    if not asked.reads_rows:
        return asked
    died_at, seq = message.key
    return replace(asked, window=(Lane(which, (died_at.isoformat(), seq), most=NEAREST),))

"""The messages before and after one in the list that it was opened from."""

from typing import NamedTuple

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchivedMessage
from pgqueue_admin.console.archive import search
from pgqueue_admin.dialects import Connection


class PrevNext(NamedTuple):
    """Archive ids, and the search that both belong to."""

    newer: int | None
    older: int | None
    q: str


def of(connection: Connection, message: ArchivedMessage, q: str | None) -> PrevNext | None:
    """None where it was not opened from a list."""
    query = search.read(q)
    if q is None or query.error:
        return None
    older = store.page(connection, query.filter, after=message.key, limit=1).messages
    newer = store.page(connection, query.filter, before=message.key, limit=1).messages
    return PrevNext(newer[0].id if newer else None, older[0].id if older else None, q)

"""Archived messages sorted by values without an index: time sent, or size."""

from datetime import datetime
from typing import Any, NamedTuple

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchivedMessage, ArchiveFilter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql


class SortedKey(NamedTuple):
    """Position of a page's end: the sort value and seq; and the newest message of its window."""

    value: str
    seq: int
    top_at: str
    top_seq: int


class SortedPage(NamedTuple):
    """``window_from``: time of death of the oldest sorted message; None if there is none."""

    messages: list[ArchivedMessage]
    after: SortedKey | None
    before: SortedKey | None
    window_from: datetime | None


def page(
    connection: Connection,
    filter: ArchiveFilter,
    by: str,
    after: SortedKey | None,
    limit: int,
    *,
    cap: int,
    before: SortedKey | None = None,
    most_first: bool = True,
) -> SortedPage:
    """``by``: sent or size. Sorts the newest ``cap`` messages that the filter finds; no more are read."""
    store.check(connection, filter)
    value, seq, top, top_seq = before or after or (None, None, None, None)
    where = {"value": value, "seq": seq, "top": top, "top_seq": top_seq, "cap": cap, "limit": limit + 1}
    statement = _statement(filter, by, most_first=most_first != (before is not None))
    rows = connection.all(statement, {**filter.params(), **where})
    more, rows = len(rows) > limit, rows[:limit]
    if before is not None:
        rows.reverse()
    older, newer = (True, more) if before is not None else (more, after is not None)
    return SortedPage(
        [ArchivedMessage(row) for row in rows],
        _key(rows[-1]) if rows and older else None,
        _key(rows[0]) if rows and newer else None,
        rows[0].window_from if rows else None,
    )


def _statement(filter: ArchiveFilter, by: str, *, most_first: bool) -> Any:
    sql = postgresql().archive
    return sql.sorted(
        value={"sent": sql.by_sent, "size": sql.by_size}[by],
        order=sql.most_first if most_first else sql.least_first,
        behind=sql.behind_most if most_first else sql.behind_least,
        listed=sql.listed,
        is_queue=sql.is_queue,
        **store.matching(filter),
    )


def _key(row: Any) -> SortedKey:
    return SortedKey(row.sorted_by, row.seq, row.top_at, row.top_seq)

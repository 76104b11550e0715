"""Reads everything a filter finds, for an export: in batches by key, each in any session."""

from collections import deque
from itertools import islice
from typing import Any

from pgqueue_admin.archive import store, text_search
from pgqueue_admin.archive.messages import ArchivedMessage, ArchiveFilter, ArchiveKey
from pgqueue_admin.archive.search_terms import AllOf, Lane
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.dialects.postgresql import postgresql

ROWS = 100  # per read: each may have 64 kB of headers


class ArchiveWalk:
    """Newest first, for text searches too: ordered by state, a message whose state changes would be met twice or never.

    Later arrivals are excluded. Each message is exported as it was when read. Memory is bounded: it holds the keys of
    one window, or those that the text index returned.
    """

    def __init__(self, asked: ArchiveFilter):
        self._asked = asked.kept()
        self._after: ArchiveKey | None = None
        self._ids = deque[int]()  # found by the text search, not read yet
        self._lanes: tuple[Lane, ...] = ()  # where the text search continues; empty: not begun
        self._row_by_row = False  # no index helps: evaluate all conditions on batches of rows
        self._looks = asked.reads_rows
        self.is_over = False

    @property
    def searches(self) -> bool:
        """Whether the next read scans rows; each person may run one such scan at a time."""
        return self._looks and not self._ids

    def read(self, connection: Connection) -> list[ArchivedMessage]:
        """The next batch, possibly empty. Raises TimedOut if not even a few rows could be scanned."""
        if self._ids:
            return self._found(connection)
        try:
            if not self._looks:
                return self._by_key(connection)
            self._look(connection)
        except TimedOut:
            if self._row_by_row:
                raise
            self._go_row_by_row()
        return []

    def _by_key(self, connection: Connection) -> list[ArchivedMessage]:
        page = store.page(connection, self._asked, self._after, ROWS, listed=_sql().exported)
        self._after, self.is_over = page.after, page.after is None
        return page.messages

    def _found(self, connection: Connection) -> list[ArchivedMessage]:
        some = tuple(islice(self._ids, ROWS))
        page = store.page(connection, ArchiveFilter(state="", ids=some), None, ROWS, listed=_sql().exported)
        for _ in some:
            self._ids.popleft()
        self.is_over = not self._ids and not self._lanes
        return page.messages

    def _look(self, connection: Connection) -> None:
        columns, texts = self._asked.columns, self._asked.texts
        if self._row_by_row:
            columns, texts = AllOf(()), AllOf((columns, texts))
        store.check(connection, self._asked)
        looked = None if self._lanes or self._row_by_row else text_search.by_index(connection, self._asked)
        looked = looked or text_search.look_for(connection, columns, texts, self._lanes or (Lane("all"),))
        found = connection.all(_sql().newest_first(), {"ids": list(looked.ids)}) if looked.ids else []
        self._ids.extend(row.id for row in found)
        self._lanes = looked.rest
        self.is_over = not self._ids and not self._lanes

    def _go_row_by_row(self) -> None:
        """Continue from the current key. The timed-out statement may have scanned the whole archive for a few rows."""
        self._row_by_row = self._looks = True
        if not self._lanes and self._after is not None:
            self._lanes = (Lane("all", (self._after.died_at.isoformat(), self._after.seq)),)


def _sql() -> Any:
    return postgresql().archive

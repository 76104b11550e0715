"""Delayed messages for their list and page: the intended due time, destination and reason."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from pgqueue_admin.console import pagination
from pgqueue_admin.console.messages import waiting_query
from pgqueue_admin.console.messages.detail import summary
from pgqueue_admin.console.messages.detail.message_list import MessageListQuery
from pgqueue_admin.console.messages.payload_columns import PayloadCell
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import database_clock
from pgqueue_admin.monitor import clock_skew as skew
from pgqueue_admin.monitor import delayed, waiting_search
from pgqueue_admin.monitor.clock_skew import ClockSkew
from pgqueue_admin.monitor.delayed import Cursor
from pgqueue_admin.monitor.message import DelayedMessage
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.transport.wire.type_names import short_type

ROWS = 50
_SAGA_TIMEOUT = "NServiceBus.IsSagaTimeoutMessage"
_DUE = re.compile(r"-?infinity|\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00( BC)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class DelayedMessageRow:
    message: DelayedMessage
    due_at: datetime | None
    now: datetime
    cells: Sequence[PayloadCell] = ()

    @property
    def tick(self) -> str:
        """The value that an act's form posts: the id, and the due time as shown."""
        return f"{self.message.id}:{self.message.due_text}"

    @property
    def is_overdue(self) -> bool:
        return self.due_at is not None and self.due_at <= self.now

    @property
    def type(self) -> str:
        return short_type(self.message.type) if self.message.type else ""

    @property
    def destination(self) -> Address | None:
        return summary.address_of(self.message.destination)

    @property
    def why(self) -> str:
        if self.message.delayed_retries:
            return f"delayed retry {self.message.delayed_retries}"
        if self.message.headers.get(_SAGA_TIMEOUT) == "True":
            return "timeout of a saga"
        return "sent with a delay" if self.message.headers else "its headers cannot be read"


@dataclass(frozen=True, slots=True)
class DelayedPageRows:
    """One page of a delayed table."""

    table: QueueTable
    page: delayed.DelayedPage
    rows: list[DelayedMessageRow]
    skew: ClockSkew | None
    asked: MessageListQuery


def found(
    connection: Connection, table: QueueTable, query: Mapping[str, str], asked: MessageListQuery
) -> DelayedPageRows:
    """The page that ``?after=`` and ``?before=`` request; ``?from=now`` skips overdue messages."""
    told, now = skew.read(connection, table.address), database_clock.now()
    after, before = _cursor(query.get("after")), _cursor(query.get("before"))
    if query.get("from") == "now" and not (after or before):
        after = _instant(now + told.zone if told else now)
    page = listed(connection, table, asked, after, before)
    rows = [DelayedMessageRow(each, meant(each, told), now) for each in page.messages]
    return DelayedPageRows(table, page, rows, told, asked)


def listed(
    connection: Connection,
    table: QueueTable,
    asked: MessageListQuery,
    after: Cursor | None = None,
    before: Cursor | None = None,
    limit: int = ROWS,
) -> delayed.DelayedPage:
    """List one page; a search pages only forwards, from the last row that it scanned."""
    if asked.error:
        return delayed.DelayedPage([])
    if asked.wanted is None:
        return delayed.page(connection, table, after=after, before=before, limit=limit)
    condition = waiting_query.condition(connection, asked.wanted)
    looked = waiting_search.delayed(connection, table, condition, after, limit)
    return delayed.DelayedPage(looked.messages, None, looked.onward, looked.looked_at)


def facts_of(
    connection: Connection, table: QueueTable, row_id: str, access: ContentAccess
) -> summary.MessageSummary | None:
    """Summary of one message; None if it is gone."""
    message = delayed.message(connection, table, row_id)
    if message is None:
        return None
    due_at = meant(message, skew.read(connection, table.address))
    return summary.of_delayed(message, table.address, access, due_at, database_clock.now())


def meant(message: DelayedMessage, told: ClockSkew | None) -> datetime | None:
    """The intended due time: the stored one without the table's zone skew."""
    return message.due_at - told.zone if message.due_at and told else message.due_at


def _instant(at: datetime) -> Cursor:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}+00", delayed.FIRST[1]


def _cursor(text: str | None) -> Cursor | None:
    """The key where a page ends; None, so the first page, if invalid."""
    key = pagination.unpack(text)
    if not key or len(key) != 2 or not all(isinstance(part, str) for part in key) or not _DUE.fullmatch(key[0]):
        return None
    try:
        return key[0], str(UUID(key[1]))
    except ValueError:
        return None

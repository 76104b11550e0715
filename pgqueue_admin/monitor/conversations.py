"""Waiting and delayed messages of one conversation, among the newest rows of each table, within a time limit."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, TimedOut
from pgqueue_admin.monitor import batch_query
from pgqueue_admin.monitor.batch_query import within
from pgqueue_admin.monitor.message import DelayedMessage, StoredMessage, WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.transport.wire import header_spellings
from pgqueue_admin.transport.wire import headers as wire

NEWEST = 2_000  # rows per queue whose headers are read; in a delayed table the soonest
MOST = 500  # messages of all tables together: each may have headers of 64 kB
TABLES = 500
SECONDS = 2.5  # for all tables together
_EACH = 0.75  # seconds per statement, lock waits included
_NO_TIME = "Its turn did not come in time."


class TableMessages(NamedTuple):
    """``unread``: why the table was not read, or empty; ``failed``: it should have been read. ``whole``: all rows
    were."""

    table: QueueTable
    messages: list[StoredMessage]
    looked_at: int
    whole: bool
    unread: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class _Question:
    dialect: Any
    conversation_id: str
    now: datetime
    ends: float  # of time.monotonic

    @property
    def left(self) -> float:
        return self.ends - time.monotonic()

    def keys(self, table: QueueTable) -> batch_query.Asked:
        browse = self.dialect.browse
        delayed = table.kind is TableKind.DELAYED
        statement = browse.delayed_in_conversation if delayed else browse.in_conversation
        asked = header_spellings.as_asked(wire.CONVERSATION_ID, self.conversation_id)
        query = statement(table=table.address, has_conversation=self.dialect.archive.has_conversation)
        return query, {**asked, "newest": NEWEST}

    def messages(self, table: QueueTable, keys: list[Any]) -> batch_query.Asked:
        """The messages with these keys, without bodies."""
        browse = self.dialect.browse
        if table.kind is TableKind.DELAYED:
            query = browse.delayed_listed(table=table.address, columns=browse.delayed_columns)
            return query, {"ids": keys}
        query = browse.listed(table=table.address, columns=browse.columns)
        return query, {"seqs": keys, "now": self.now}


def read(
    connection: Connection, tables: Sequence[QueueTable], conversation_id: str, now: datetime
) -> list[TableMessages]:
    """Results per table, in their order. Raises DatabaseDown."""
    question = _Question(connection.dialect, conversation_id, now, time.monotonic() + SECONDS)
    readable = [table for table in tables[:TABLES] if not _blocking_reason(table)]
    looked = dict(zip((each.address for each in readable), _answers(connection, readable, question), strict=True))
    told, left = list[TableMessages](), MOST
    for table in tables:
        told.append(_told(connection, table, looked.get(table.address), question, left))
        left -= len(told[-1].messages)
    return told


def _answers(connection: Connection, tables: list[QueueTable], question: _Question) -> Iterator[batch_query.Answer]:
    for start in range(0, len(tables), batch_query.AT_ONCE):
        some = tables[start : start + batch_query.AT_ONCE]
        yield from _ask(connection, [question.keys(table) for table in some], question)


def _ask(connection: Connection, asked: list[batch_query.Asked], question: _Question) -> list[batch_query.Answer]:
    """In one batch; if it fails, each half separately, so an unreadable table delays few others, and briefly."""
    if question.left <= 0:
        return [TimedOut(_NO_TIME)] * len(asked)
    try:
        with within(connection, min(_EACH, question.left / len(asked))):
            return [*connection.batch(asked)]
    except DatabaseDown:
        raise
    except DatabaseError as error:
        if len(asked) == 1:
            return [error]
    half = len(asked) // 2
    return _ask(connection, asked[:half], question) + _ask(connection, asked[half:], question)


def _told(
    connection: Connection, table: QueueTable, answer: batch_query.Answer | None, question: _Question, most: int
) -> TableMessages:
    if answer is None:
        blocking_reason = _blocking_reason(table)
        return TableMessages(table, [], 0, False, blocking_reason or _NO_TIME, not blocking_reason)
    if isinstance(answer, DatabaseError):
        return TableMessages(table, [], 0, False, str(answer), True)
    keys, looked_at = answer[0].keys or [], answer[0].looked_at
    rows: batch_query.Answer = []
    if keys and most:
        (rows,) = _ask(connection, [question.messages(table, keys[:most])], question)
    if isinstance(rows, DatabaseError):
        return TableMessages(table, [], 0, False, str(rows), True)
    made: type[StoredMessage] = DelayedMessage if table.kind is TableKind.DELAYED else WaitingMessage
    found = [made.from_row(row) for row in rows]
    mine = [each for each in found if each.headers.get(wire.CONVERSATION_ID) == question.conversation_id]
    return TableMessages(table, mine, looked_at, looked_at < NEWEST and len(keys) <= most)


def _blocking_reason(table: QueueTable) -> str:
    """Empty if its newest rows can be found without reading the whole table."""
    if table.why_unread:
        return table.why_unread
    if table.kind is TableKind.DELAYED:
        return ""
    if not table.has_messages:
        return f"Its columns are not those of a queue: {table.reason}"
    return "" if table.seq_indexed else "It has no index on seq: to find its newest rows would read all of it."

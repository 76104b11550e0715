"""Large batches go into a queue by COPY; each message expires when it would by an insert (T8)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.transport.sending.message_factory import Sheet
from pgqueue_admin.transport.tables.table_queue import milliseconds
from pgqueue_admin.transport.wire.headers import dump
from pgqueue_admin.transport.wire.ids import row_ids
from pgqueue_admin.transport.wire.message import OutgoingMessage

FEW = 25  # as many are one round trip, also over a long wire; of more the server's work is what counts
MANY = 1_000  # in a transaction of somebody's, where COPY needs a savepoint
BIG = 16 * 1024 * 1024  # bytes of bodies; as parameters of one statement they stand in memory three times
NOT_BY_COPY = ("42809", "0A000")  # into views, and where policies decide about rows

Rows = Iterator[tuple[bytes, Any, str, bytes]]


def is_large(messages: Sequence[OutgoingMessage]) -> bool:
    return len(messages) > MANY or (len(messages) > 1 and sum(len(each.body) for each in messages) > BIG)


def load(connection: Connection, dialect: Dialect, queue: Address, messages: Sequence[OutgoingMessage]) -> None:
    """In the caller's transaction: its start is what the time to be received is counted from."""
    expiries = _expiries(connection, dialect, messages)
    connection.copy_rows(dialect.queue.load(table=queue), rows(messages, expiries))


def slices(messages: Iterable[OutgoingMessage]) -> Iterator[list[OutgoingMessage]]:
    """Of no more messages and bytes than one statement may well have."""
    part: list[OutgoingMessage] = []
    size = 0
    for message in messages:
        if part and (len(part) == MANY or size + len(message.body) > BIG):
            yield part
            part, size = [], 0
        part.append(message)
        size += len(message.body)
    if part:
        yield part


def rows(messages: Iterable[OutgoingMessage], expiries: dict[int, Any]) -> Rows:
    """As ``copy_rows`` takes them. ``expiries``: when each expires, by its milliseconds to be received."""
    for message, row_id in zip(messages, row_ids(), strict=False):
        ttbr_ms = milliseconds(message.ttbr)
        yield row_id, None if ttbr_ms is None else expiries[ttbr_ms], dump(message.headers), message.body


def rows_of(sheets: Iterable[Sheet], ids: list[str]) -> Rows:
    """Of what goes for any time. ``ids`` gets those of the messages."""
    for (message_id, headers, body), row_id in zip(sheets, row_ids(), strict=False):
        ids.append(message_id)
        yield row_id, None, headers, body


def _expiries(connection: Connection, dialect: Dialect, messages: Sequence[OutgoingMessage]) -> dict[int, Any]:
    """The server's time for each of the spans."""
    spans = {milliseconds(each.ttbr) for each in messages if each.ttbr is not None}
    found = connection.all(dialect.queue.expiries(), {"ttbrs_ms": list(spans)}) if spans else []
    return {row.ttbr_ms: row.expires for row in found}

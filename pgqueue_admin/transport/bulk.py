"""Large batches go into a queue by COPY; each message expires when it would by an insert (T8)."""

from collections.abc import Iterable, Iterator, Sequence
from uuid import uuid4

from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.transport.headers import dump
from pgqueue_admin.transport.message import OutgoingMessage
from pgqueue_admin.transport.table_queue import milliseconds

MANY = 1_000
PART = 25  # messages that the server works on while the next are made, which takes about as long
PART_BYTES = 1024 * 1024  # of bodies
BIG = 16 * 1024 * 1024  # bytes of bodies; as parameters of one statement they stand in memory three times


def is_large(messages: Sequence[OutgoingMessage]) -> bool:
    return len(messages) > MANY or (len(messages) > 1 and sum(len(each.body) for each in messages) > BIG)


def parts(messages: Iterable[OutgoingMessage]) -> Iterator[list[OutgoingMessage]]:
    """In order; each as soon as it is full."""
    part: list[OutgoingMessage] = []
    size = 0
    for message in messages:
        part.append(message)
        size += len(message.body)
        if len(part) == PART or size >= PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def load(connection: Connection, dialect: Dialect, queue: Address, messages: Sequence[OutgoingMessage]) -> None:
    """In the caller's transaction: its start is what the time to be received is counted from."""
    expiries = _expiries(connection, dialect, messages)
    connection.copy_rows(dialect.queue.load(table=queue), _rows(messages, expiries))


def _rows(messages: Sequence[OutgoingMessage], expiries: dict[int, str]) -> Iterator[tuple[object, ...]]:
    for message in messages:
        ttbr_ms = milliseconds(message.ttbr)
        expires = None if ttbr_ms is None else expiries[ttbr_ms]
        yield uuid4(), expires, dump(message.headers), message.body


def _expiries(connection: Connection, dialect: Dialect, messages: Sequence[OutgoingMessage]) -> dict[int, str]:
    """The server's time for each of the spans."""
    spans = {milliseconds(each.ttbr) for each in messages if each.ttbr is not None}
    rows = connection.all(dialect.queue.expiries(), {"ttbrs_ms": list(spans)}) if spans else []
    return {row.ttbr_ms: row.expires for row in rows}

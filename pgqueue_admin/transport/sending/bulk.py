"""Splits outgoing messages into bulk loads and batches (T8)."""

from collections.abc import Iterable, Iterator, Sequence

from pgqueue_admin.dialects.queue_store import QueueRow
from pgqueue_admin.transport.sending.message_factory import Sheet
from pgqueue_admin.transport.wire.message import OutgoingMessage

FEW = 25  # up to so many, the round trip dominates; beyond, the server's work
MANY = 1_000  # in a caller's transaction, where a bulk load needs a savepoint
BIG = 16 * 1024 * 1024  # bytes of bodies; parameters of a statement are in memory three times


def is_large(messages: Sequence[OutgoingMessage]) -> bool:
    return len(messages) > MANY or (len(messages) > 1 and sum(len(each.body) for each in messages) > BIG)


def slices(messages: Iterable[OutgoingMessage]) -> Iterator[list[OutgoingMessage]]:
    """Split messages into parts that suit one statement, by number and bytes."""
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


def rows_of(sheets: Iterable[Sheet], ids: list[str]) -> Iterator[QueueRow]:
    """Rows of messages that never expire; appends their ids to ``ids``."""
    for message_id, headers, body in sheets:
        ids.append(message_id)
        yield headers, body, None

"""Builds the archive row of a message that our engine gave up on."""

from uuid import UUID

from pgqueue_admin.archive.error_queue_parser import INDEXED, token_of
from pgqueue_admin.archive.messages import EDIT_OF, DeadMessage, clean
from pgqueue_admin.dialects import Dialect
from pgqueue_admin.transport.failure import MOST_MESSAGE, MOST_TRACE, Failure, shortened
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.message import IncomingMessage
from pgqueue_admin.transport.wire.wire_times import parse_time


def dead_message(message: IncomingMessage, failure: Failure, dialect: Dialect, machine: str = "") -> DeadMessage:
    """Build the input of ``store.archive_failed`` from what the engine's exhausted port receives."""
    return DeadMessage(
        queue=dialect.canonical(message.queue),
        target=message.queue,
        retry_blocked_reason=clean(f"It cannot be retried: {message.unreadable}.", 1000)
        if message.headers_lost
        else None,
        message_id=clean(message.message_id, INDEXED),
        message_type=clean(message.type, INDEXED) or None,
        headers=message.headers_text,
        body=message.raw_body,
        row_id=UUID(message.row_id),
        exception_type=clean(failure.exception_type, INDEXED),
        exception_message=clean(failure.message, MOST_MESSAGE),
        stack_trace=clean(shortened(failure.stack_trace, MOST_TRACE)),
        endpoint=clean(failure.endpoint, INDEXED),
        machine=machine or None,
        attempts=failure.attempts,
        retry_token=token_of(message.headers),
        edit_of=clean(message.headers.get(EDIT_OF), INDEXED),
        sent_at=parse_time(message.headers.get(h.TIME_SENT)),
        died_at=failure.failed_at,
    )

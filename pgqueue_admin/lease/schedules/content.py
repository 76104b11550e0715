"""The content of a schedule: a lease message, or a transport message with the same headers as transport's senders."""

import json
import re

from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.dialects.schedule_store import ScheduledMessage
from pgqueue_admin.lease import payload
from pgqueue_admin.lease.errors import MessageRefused, ScheduleRefused
from pgqueue_admin.transport.sending.message_factory import MessageFactory
from pgqueue_admin.transport.sessions.queue_notifications import channel
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.addresses import Addressing
from pgqueue_admin.transport.wire.header_composer import HeaderComposer
from pgqueue_admin.transport.wire.serializers import Serializers

SENDER = "pgqueue schedules"
MOST_BYTES = 1_000_000

_DUE = re.compile(r"\{\{\s*due\s*(\|[^{}]*)?\}\}")
# Replaced by the database on sending (schema.sql, send_scheduled).
_DATE, _TIME = "{{ due | date }}", "{{ due }}"
_PER_MESSAGE: h.Headers = {
    h.MESSAGE_ID: "{{ message id }}",
    h.CORRELATION_ID: "{{ message id }}",
    h.CONVERSATION_ID: "{{ conversation id }}",
    h.TIME_SENT: "{{ time sent }}",
}


def lease_message(session: Connection, text: str) -> ScheduledMessage:
    """Raises ScheduleRefused."""
    try:
        return ScheduledMessage("lease", payload.written(session, _read(text)))
    except MessageRefused as error:
        raise ScheduleRefused("message", str(error)) from error


def transport_message(
    session: Connection, dialect: Dialect, queue: Address, message_type: str, text: str
) -> ScheduledMessage:
    """For an existing queue. Raises ScheduleRefused."""
    _check_queue(session, dialect, queue)
    if not message_type.strip():
        raise ScheduleRefused(
            "type", "A transport message needs a type, such as Shop.PlaceOrder: by it a handler is found."
        )
    composer = HeaderComposer(SENDER, None, Serializers())
    factory = MessageFactory(Addressing(dialect, queue.schema), composer, may_delay=False)
    message = _read(text)
    made = factory.send(queue, message, message_type.strip(), _PER_MESSAGE, None)
    body = made.body.decode()
    if not body.isascii():  # stored as text until sent: escaped if the database's encoding lacks the characters
        body = session.as_json(message)
    wakes = channel(dialect, queue) if dialect.supports_notify else None
    return ScheduledMessage("transport", body, message_type.strip(), *queue, wakes, h.dump(made.headers))


def _check_queue(session: Connection, dialect: Dialect, queue: Address) -> None:
    for fault in dialect.queue_store(queue).faults(session):
        if fault.stops:
            raise ScheduleRefused("to", f"Nothing could be received from there. {fault.said}")


def _read(text: str) -> object:
    """Parse, with due placeholders normalized to the database's spelling."""
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise ScheduleRefused("message", f"The message is longer than {MOST_BYTES:,} bytes.")
    try:
        return json.loads(_DUE.sub(_mark, text))
    except json.JSONDecodeError as error:
        said = f"The message is no JSON: {error.msg}, in line {error.lineno}, column {error.colno}."
        raise ScheduleRefused("message", said) from None
    except (ValueError, RecursionError) as error:
        raise ScheduleRefused("message", f"The message cannot be read: {error}") from None


def _mark(found: re.Match[str]) -> str:
    how = (found[1] or "|").strip("| \t\n")
    if how not in {"", "date"}:
        raise ScheduleRefused("message", f"{found[0]} is not known. There are {_TIME} and {_DATE}.")
    return _DATE if how else _TIME

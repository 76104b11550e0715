"""The headers that a message gets on its way to an error queue (wire sheet 7.2, 8.1)."""

from pgqueue_admin.dialects import Dialect
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire import host_info
from pgqueue_admin.transport.wire.header_composer import stamped
from pgqueue_admin.transport.wire.message import IncomingMessage

_TAKEN_OFF = (h.RETRIES, h.FL_RETRIES, h.FORWARD_DESTINATION)


def faulted(dialect: Dialect, message: IncomingMessage, failure: Failure) -> h.Headers:
    """The original headers and what went wrong. The counters go, ``Retries.Timestamp`` stays: so the original does."""
    sent_on = stamped(message.headers, h.wire_now())
    kept = {name: value for name, value in sent_on.items() if name not in _TAKEN_OFF}
    kept |= h.of_its_own_trace(kept)
    if failure.forward_to:
        return kept | {h.MESSAGE_ID: message.message_id} | _not_forwarded(failure)
    return {
        **kept,
        h.MESSAGE_ID: message.message_id,
        **_where(dialect, failure),
        **_what(failure),
        **_data(message, failure),
    }


def _not_forwarded(failure: Failure) -> h.Headers:
    """Nobody processed it; where it failed is where it was to go, in its sender's spelling (wire sheet 3)."""
    return {**_what(failure), h.EXCEPTION_HELP_LINK: None, h.FAILED_Q: failure.forward_to}


def _where(dialect: Dialect, failure: Failure) -> h.Headers:
    return {
        h.PROCESSING_MACHINE: host_info.machine(),
        h.PROCESSING_ENDPOINT: failure.endpoint,
        h.HOST_ID: host_info.host_id(),
        h.HOST_DISPLAY_NAME: host_info.machine(),
        h.FAILED_Q: dialect.canonical(failure.queue),
    }


def _what(failure: Failure) -> h.Headers:
    inner: h.Headers = {h.INNER_EXCEPTION_TYPE: failure.inner_exception_type} if failure.inner_exception_type else {}
    return {
        h.EXCEPTION_TYPE: failure.exception_type,
        **inner,
        h.EXCEPTION_MESSAGE: failure.message,
        h.EXCEPTION_SOURCE: failure.source,
        h.EXCEPTION_STACK_TRACE: failure.stack_trace,
        h.TIME_OF_FAILURE: h.wire_time(failure.failed_at),
    }


def _data(message: IncomingMessage, failure: Failure) -> h.Headers:
    ids = {"Message ID": message.message_id, "Transport message ID": message.row_id}
    data = {**failure.data, **ids, "Pipeline canceled": "False"}
    return {h.EXCEPTION_DATA + name: value for name, value in data.items()}

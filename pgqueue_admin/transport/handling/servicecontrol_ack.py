"""Tells the platform that a message which it retried has been handled (wire sheet 8.3)."""

from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.addresses import Addressing
from pgqueue_admin.transport.wire.header_composer import WIRE_VERSION
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage


def of_retry(message: IncomingMessage, addressing: Addressing) -> list[OutgoingMessage]:
    """One confirmation or none. It has these headers only, and as the original's no message id."""
    retry, queue = message.headers.get(h.RETRY_UNIQUE_MESSAGE_ID), message.headers.get(h.RETRY_ACKNOWLEDGEMENT_QUEUE)
    if not retry or not queue:
        return []
    try:
        return [OutgoingMessage(addressing.resolve(queue), _headers(retry), b"")]
    except AddressUnreadable:
        return []


def _headers(retry: str) -> h.Headers:
    now = h.wire_now()
    return {
        h.RETRY_SUCCESSFUL: now,
        h.RETRY_UNIQUE_MESSAGE_ID: retry,
        h.CONTROL_MESSAGE: "True",
        h.VERSION: WIRE_VERSION,
        h.TIME_SENT: now,
    }

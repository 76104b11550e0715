"""Sends after successful handling: the audit copy, and the acknowledgement of a retry."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire import host_info
from pgqueue_admin.transport.wire.addresses import Addressing
from pgqueue_admin.transport.wire.header_composer import WIRE_VERSION, stamped
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage
from pgqueue_admin.transport.wire.wire_times import wire_now, wire_time


class AuditCopies:
    """Audit copies, dispatched with the handlers' sends, so that a copy exists exactly if the message was handled."""

    def __init__(self, endpoint: str, addressing: Addressing, settings: Callable[[], EndpointSettings]):
        self._endpoint = endpoint
        self._addressing = addressing
        self._settings = settings

    def of(self, message: IncomingMessage, started: float) -> list[OutgoingMessage]:
        """``started``: start of processing, in seconds since the epoch."""
        was_retried, settings = h.RETRY_UNIQUE_MESSAGE_ID in message.headers, self._settings()
        sent = of_retry(message, self._addressing) if was_retried else []
        if settings.audit_queue:
            sent.append(self._copy(message, started, settings, acknowledged=bool(sent)))
        return sent

    def _copy(
        self, message: IncomingMessage, started: float, settings: EndpointSettings, acknowledged: bool
    ) -> OutgoingMessage:
        """The message as received, with where and when it was processed (wire sheet 7.2)."""
        now = wire_now()
        headers: h.Headers = {
            **stamped(message.headers, now),
            h.MESSAGE_ID: message.message_id,
            h.PROCESSING_STARTED: wire_time(datetime.fromtimestamp(started, UTC)),
            h.PROCESSING_ENDED: now,
            h.HOST_ID: host_info.host_id(),
            h.HOST_DISPLAY_NAME: host_info.machine(),
            h.PROCESSING_MACHINE: host_info.machine(),
            h.PROCESSING_ENDPOINT: self._endpoint,
            **({h.RETRY_ACKNOWLEDGEMENT_SENT: "true"} if acknowledged else {}),
        }
        ttbr = timedelta(seconds=settings.audit_ttbr) if settings.audit_ttbr else None
        return OutgoingMessage(self._addressing.resolve(settings.audit_queue), headers, message.body, ttbr)


# Confirms to the platform that a message that it retried was handled (wire sheet 8.3).
def of_retry(message: IncomingMessage, addressing: Addressing) -> list[OutgoingMessage]:
    """One confirmation or none. It has only these headers and, like the original's, no message id."""
    retry, queue = message.headers.get(h.RETRY_UNIQUE_MESSAGE_ID), message.headers.get(h.RETRY_ACKNOWLEDGEMENT_QUEUE)
    if not retry or not queue:
        return []
    try:
        return [OutgoingMessage(addressing.resolve(queue), _headers(retry), b"")]
    except AddressUnreadable:
        return []


def _headers(retry: str) -> h.Headers:
    now = wire_now()
    return {
        h.RETRY_SUCCESSFUL: now,
        h.RETRY_UNIQUE_MESSAGE_ID: retry,
        h.CONTROL_MESSAGE: "True",
        h.VERSION: WIRE_VERSION,
        h.TIME_SENT: now,
    }

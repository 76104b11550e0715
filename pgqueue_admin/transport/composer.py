"""Headers of what this endpoint sends (wire sheet 7.2)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from pgqueue_admin.transport import headers as h
from pgqueue_admin.transport import host
from pgqueue_admin.transport.message import IncomingMessage
from pgqueue_admin.transport.serializers import Serializers

SEND, PUBLISH, REPLY = "Send", "Publish", "Reply"
WIRE_VERSION = "10.2.8"  # of NServiceBus, as whose endpoint this one writes: readers ask it what may be missing
_TRACES: dict[str, h.Headers] = {SEND: {h.START_NEW_TRACE: "False"}, PUBLISH: {h.START_NEW_TRACE: "True"}, REPLY: {}}

Types = str | Sequence[str]


class Composer:
    """Puts headers and bodies together for one endpoint."""

    def __init__(self, endpoint: str, reply_to: str | None, serializers: Serializers):
        self._endpoint = endpoint
        self._reply_to = reply_to
        self._serializers = serializers

    def compose(
        self,
        message: Any,
        types: Types,
        intent: str,
        headers: h.Headers,
        ttbr: timedelta | None,
        incoming: IncomingMessage | None = None,
    ) -> tuple[h.Headers, bytes]:
        """Headers and body. What the caller gives in ``headers`` wins."""
        if ttbr is not None and ttbr <= timedelta():
            raise ValueError(f"a time to be received of {ttbr} is over before the message is sent")
        made = {
            **self._identity(intent, incoming, headers.get(h.MESSAGE_ID)),
            **({h.TIME_TO_BE_RECEIVED: h.wire_timespan(ttbr)} if ttbr else {}),
            **self._sender(),
            **self._content(types),
            **headers,
        }
        return made, self._serializers.dump(message)

    def compose_code(self, code: int, headers: h.Headers, incoming: IncomingMessage) -> h.Headers:
        """Headers of an answer without a body, hence without type and format."""
        answer = {h.CONTROL_MESSAGE: "True", h.ERROR_CODE: str(code)}
        return {**self._identity(REPLY, incoming), **self._sender(), **answer, **headers}

    def _identity(self, intent: str, incoming: IncomingMessage | None, given: str | None = None) -> h.Headers:
        message_id = given or str(uuid4())
        first: h.Headers = {h.CONVERSATION_ID: str(uuid4()), h.CORRELATION_ID: message_id}
        related = _related(incoming) if incoming else first
        return {h.MESSAGE_ID: message_id, h.MESSAGE_INTENT: intent, **_TRACES[intent], **related}

    def _sender(self) -> h.Headers:
        """Who only sends has no queue that could be replied to."""
        reply_to: h.Headers = {h.REPLY_TO_ADDRESS: self._reply_to} if self._reply_to else {}
        return {
            **reply_to,
            h.ORIGINATING_MACHINE: host.machine(),
            h.ORIGINATING_ENDPOINT: self._endpoint,
            h.ORIGINATING_HOST_ID: host.host_id(),
            h.VERSION: WIRE_VERSION,
            h.TIME_SENT: h.wire_time(datetime.now(UTC)),
        }

    def _content(self, types: Types) -> h.Headers:
        enclosed = types if isinstance(types, str) else ";".join(types)
        if not enclosed:
            raise ValueError('a message needs a type, such as "Shop.PlaceOrder": without one no endpoint handles it')
        return {h.CONTENT_TYPE: self._serializers.main.content_type, h.ENCLOSED_MESSAGE_TYPES: enclosed}


def _related(incoming: IncomingMessage) -> h.Headers:
    return {
        h.RELATED_TO: incoming.message_id,
        h.CONVERSATION_ID: incoming.headers.get(h.CONVERSATION_ID) or str(uuid4()),
        h.CORRELATION_ID: incoming.headers.get(h.CORRELATION_ID) or incoming.message_id,
    }

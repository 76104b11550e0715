"""Headers of what this endpoint sends (wire sheet 7.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pgqueue_admin.transport import headers as h
from pgqueue_admin.transport import host
from pgqueue_admin.transport.ids import new_id
from pgqueue_admin.transport.message import IncomingMessage
from pgqueue_admin.transport.serializers import Serializers

SEND, PUBLISH, REPLY = "Send", "Publish", "Reply"
WIRE_VERSION = "10.2.8"  # of NServiceBus, as whose endpoint this one writes: readers ask it what may be missing
_TRACES: dict[str, h.Headers] = {SEND: {h.START_NEW_TRACE: "False"}, PUBLISH: {h.START_NEW_TRACE: "True"}, REPLY: {}}

Types = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Letterhead:
    """What all messages of one send have in common: made once, however many they are."""

    common: h.Headers
    given: h.Headers  # by the caller: wins
    incoming: IncomingMessage | None
    serializers: Serializers

    def write(self, message: Any) -> tuple[h.Headers, bytes]:
        """Headers and body."""
        return {**_identity(self.incoming, self.given), **self.common, **self.given}, self.serializers.dump(message)


class Composer:
    """Puts headers and bodies together for one endpoint."""

    def __init__(self, endpoint: str, reply_to: str | None, serializers: Serializers):
        self._endpoint = endpoint
        self._reply_to = reply_to
        self._serializers = serializers

    def letterhead(
        self,
        types: Types,
        intent: str,
        headers: h.Headers,
        ttbr: timedelta | None,
        incoming: IncomingMessage | None = None,
    ) -> Letterhead:
        if ttbr is not None and ttbr <= timedelta():
            raise ValueError(f"a time to be received of {ttbr} is over before the message is sent")
        lifetime: h.Headers = {h.TIME_TO_BE_RECEIVED: h.wire_timespan(ttbr)} if ttbr else {}
        common = {**_intent(intent), **lifetime, **self._sender(), **self._content(types)}
        return Letterhead(common, headers, incoming, self._serializers)

    def compose_code(self, code: int, headers: h.Headers, incoming: IncomingMessage) -> h.Headers:
        """Headers of an answer without a body, hence without type and format."""
        answer = {h.CONTROL_MESSAGE: "True", h.ERROR_CODE: str(code)}
        return {**_identity(incoming, {}), **_intent(REPLY), **self._sender(), **answer, **headers}

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


def _intent(intent: str) -> h.Headers:
    return {h.MESSAGE_INTENT: intent, **_TRACES[intent]}


def _identity(incoming: IncomingMessage | None, given: h.Headers) -> h.Headers:
    message_id = given.get(h.MESSAGE_ID) or new_id()
    if incoming:
        return {h.MESSAGE_ID: message_id, **_related(incoming)}
    return {h.MESSAGE_ID: message_id, h.CONVERSATION_ID: new_id(), h.CORRELATION_ID: message_id}


def _related(incoming: IncomingMessage) -> h.Headers:
    return {
        h.RELATED_TO: incoming.message_id,
        h.CONVERSATION_ID: incoming.headers.get(h.CONVERSATION_ID) or new_id(),
        h.CORRELATION_ID: incoming.headers.get(h.CORRELATION_ID) or incoming.message_id,
    }

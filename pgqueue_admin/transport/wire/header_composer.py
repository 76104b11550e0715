"""Composes the headers of outgoing messages (wire sheet 7.2)."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple

from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire import host_info
from pgqueue_admin.transport.wire.ids import new_ids
from pgqueue_admin.transport.wire.message import IncomingMessage
from pgqueue_admin.transport.wire.serializers import Serializers
from pgqueue_admin.transport.wire.wire_times import LONGEST_SPAN, SHORTEST_SPAN, wire_now, wire_timespan

# Headers common to all messages of a send are made and serialized once.
_IDS = f'{{"{h.MESSAGE_ID}":"%s","{h.CONVERSATION_ID}":"%s","{h.CORRELATION_ID}":"%s"'


class FixedHeaders(NamedTuple):
    """Headers that are the same in every send; ``text`` is their form by ``headers.pairs``."""

    headers: h.Headers
    text: str


class HeaderTemplate:
    """Makes the headers of the messages of one send. ``times``: as text. ``given``: the caller's, which win."""

    __slots__ = ("_end", "_fixed", "_given", "_incoming", "_times")

    def __init__(self, fixed: FixedHeaders, times: str, given: h.Headers, incoming: IncomingMessage | None):
        self._fixed = fixed
        self._times = times
        self._end = f",{fixed.text},{times}}}"
        self._given = given
        self._incoming = incoming

    def headers(self) -> Mapping[str, str | None]:
        """Headers of the next message."""
        if self._given:
            own = identity(self._incoming, self._given.get(h.MESSAGE_ID))
            return {**own, **self._fixed.headers, **h.parse(f"{{{self._times}}}"), **self._given}
        return h.SerializedHeaders(*self.written())

    def written(self) -> tuple[str, str]:
        """Id and serialized headers of the next message."""
        if self._given:
            made = self.headers()
            return h.message_id(made) or "", h.dump(made)
        if self._incoming:
            own = identity(self._incoming)
            return own[h.MESSAGE_ID] or "", f"{{{h.pairs(own)}{self._end}"
        message, conversation = new_ids()  # as ``identity`` without ``incoming``; our ids need no quoting
        return message, _IDS % (message, conversation, message) + self._end


def identity(incoming: IncomingMessage | None, given: str | None = None) -> h.Headers:
    """The ids of a message, and its relation to the one being handled. ``given``: its own id."""
    own, conversation = new_ids()
    if incoming is None:
        own = given or own
        return {h.MESSAGE_ID: own, h.CONVERSATION_ID: conversation, h.CORRELATION_ID: own}
    return {
        h.MESSAGE_ID: given or own,
        h.RELATED_TO: incoming.message_id,
        h.CONVERSATION_ID: incoming.headers.get(h.CONVERSATION_ID) or conversation,
        h.CORRELATION_ID: incoming.headers.get(h.CORRELATION_ID) or incoming.message_id,
    }


SEND, PUBLISH, REPLY = "Send", "Publish", "Reply"
WIRE_VERSION = "10.2.8"  # of NServiceBus, whose format we write: readers derive from it which headers may be missing
_TRACES: dict[str, h.Headers] = {SEND: {h.START_NEW_TRACE: "False"}, PUBLISH: {h.START_NEW_TRACE: "True"}, REPLY: {}}

Types = str | Sequence[str]


class HeaderComposer:
    """Composes headers and bodies for one endpoint."""

    def __init__(self, endpoint: str, reply_to: str | None, serializers: Serializers):
        self._endpoint = endpoint
        self._reply_to = reply_to
        self._serializers = serializers
        self.body = serializers.dump
        self._fixed = lru_cache(maxsize=1024)(self._write_fixed)  # a program sends the same few types again and again

    def letterhead(
        self,
        types: Types,
        intent: str,
        headers: h.Headers,
        ttbr: timedelta | None,
        incoming: IncomingMessage | None = None,
    ) -> HeaderTemplate:
        if ttbr is not None:
            _check_ttbr(ttbr)
        fixed = self._fixed(intent, types if isinstance(types, str) else ";".join(types))
        times = f'"{h.TIME_SENT}":"{wire_now()}"'
        if ttbr:
            times += f',"{h.TIME_TO_BE_RECEIVED}":"{wire_timespan(ttbr)}"'
        return HeaderTemplate(fixed, times, headers, incoming)

    def compose_code(self, code: int, headers: h.Headers, incoming: IncomingMessage) -> h.Headers:
        """Headers of a reply without body, hence without type and content type."""
        answer = {h.CONTROL_MESSAGE: "True", h.ERROR_CODE: str(code)}
        sent = {h.TIME_SENT: wire_now()}
        return {**identity(incoming), **_intent(REPLY), **self._sender(), **sent, **answer, **headers}

    def _sender(self) -> h.Headers:
        """Headers of the sender. A send-only endpoint has no reply address."""
        reply_to: h.Headers = {h.REPLY_TO_ADDRESS: self._reply_to} if self._reply_to else {}
        return {
            **reply_to,
            h.ORIGINATING_MACHINE: host_info.machine(),
            h.ORIGINATING_ENDPOINT: self._endpoint,
            h.ORIGINATING_HOST_ID: host_info.host_id(),
            h.VERSION: WIRE_VERSION,
        }

    def _write_fixed(self, intent: str, types: str) -> FixedHeaders:
        """Headers of every message of these types."""
        if not types:
            raise ValueError('a message needs a type, such as "Shop.PlaceOrder": without one no endpoint handles it')
        content = {h.CONTENT_TYPE: self._serializers.main.content_type, h.ENCLOSED_MESSAGE_TYPES: types}
        made = {**_intent(intent), **self._sender(), **content}
        return FixedHeaders(made, h.pairs(made))


def stamped(headers: h.Headers, now: str) -> h.Headers:
    """Add the headers that each dispatch adds if missing (wire sheet 7.2)."""
    return {h.TIME_SENT: now, h.VERSION: WIRE_VERSION, **headers}


def _check_ttbr(ttbr: timedelta) -> None:
    if ttbr <= timedelta():
        raise ValueError(f"a time to be received of {ttbr} is over before the message is sent")
    if ttbr < SHORTEST_SPAN:
        raise ValueError(f"a time to be received of {ttbr} is less than the millisecond that queues count in")
    if ttbr > LONGEST_SPAN:
        raise ValueError(f"a time to be received of {ttbr.days} days is for ever: leave out ttbr=")


def _intent(intent: str) -> h.Headers:
    return {h.MESSAGE_INTENT: intent, **_TRACES[intent]}

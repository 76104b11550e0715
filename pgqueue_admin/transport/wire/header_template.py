"""What all messages of one send have in common: made, and written down, once however many they are."""

from collections.abc import Mapping
from typing import NamedTuple

from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.ids import new_ids
from pgqueue_admin.transport.wire.message import IncomingMessage

_IDS = f'{{"{h.MESSAGE_ID}":"%s","{h.CONVERSATION_ID}":"%s","{h.CORRELATION_ID}":"%s"'


class FixedHeaders(NamedTuple):
    """What does not change from send to send; ``text`` is as ``headers.pairs`` writes it."""

    headers: h.Headers
    text: str


class HeaderTemplate:
    """``times``: of this send, as text. ``given``: by the caller; wins."""

    __slots__ = ("_end", "_fixed", "_given", "_incoming", "_times")

    def __init__(self, fixed: FixedHeaders, times: str, given: h.Headers, incoming: IncomingMessage | None):
        self._fixed = fixed
        self._times = times
        self._end = f",{fixed.text},{times}}}"
        self._given = given
        self._incoming = incoming

    def headers(self) -> Mapping[str, str | None]:
        """Of the next message."""
        if self._given:
            own = identity(self._incoming, self._given.get(h.MESSAGE_ID))
            return {**own, **self._fixed.headers, **h.parse(f"{{{self._times}}}"), **self._given}
        return h.SerializedHeaders(*self.written())

    def written(self) -> tuple[str, str]:
        """The same as text, behind the message's id."""
        if self._given:
            made = self.headers()
            return h.message_id(made) or "", h.dump(made)
        if self._incoming:
            own = identity(self._incoming)
            return own[h.MESSAGE_ID] or "", f"{{{h.pairs(own)}{self._end}"
        message, conversation = new_ids()  # as ``identity``: nobody's answer, and ids of ours need no quoting
        return message, _IDS % (message, conversation, message) + self._end


def identity(incoming: IncomingMessage | None, given: str | None = None) -> h.Headers:
    """The ids of a message, and its relation to the one that is being handled. ``given``: its own."""
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

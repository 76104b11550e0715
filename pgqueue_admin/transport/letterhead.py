"""What all messages of one send have in common: made, and written down, once however many they are."""

from dataclasses import dataclass
from typing import Any

from pgqueue_admin.transport import headers as h
from pgqueue_admin.transport.ids import new_ids
from pgqueue_admin.transport.message import IncomingMessage
from pgqueue_admin.transport.serializers import Serializers


@dataclass(frozen=True, slots=True)
class Letterhead:
    common: h.Headers
    text: str  # of ``common``, as ``headers.pairs`` writes it
    given: h.Headers  # by the caller: wins
    incoming: IncomingMessage | None
    serializers: Serializers

    def write(self, message: Any) -> tuple[h.Headers, bytes]:
        """Headers and body."""
        return self._headers(), self.serializers.dump(message)

    def _headers(self) -> h.Headers:
        if self.given:
            return {**identity(self.incoming, self.given.get(h.MESSAGE_ID)), **self.common, **self.given}
        if self.incoming:
            own = identity(self.incoming)
            return h.Written({**own, **self.common}, f"{{{h.pairs(own)},{self.text}}}")
        return self._of_nothing_before()

    def _of_nothing_before(self) -> h.Headers:
        """As ``identity``, for what most messages are: nobody's answer, and with ids of ours that need no quoting."""
        own, conversation = new_ids()
        text = f'"{h.MESSAGE_ID}":"{own}","{h.CONVERSATION_ID}":"{conversation}","{h.CORRELATION_ID}":"{own}"'
        ids = {h.MESSAGE_ID: own, h.CONVERSATION_ID: conversation, h.CORRELATION_ID: own}
        return h.Written({**ids, **self.common}, f"{{{text},{self.text}}}")


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

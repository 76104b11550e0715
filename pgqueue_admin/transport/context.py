"""What a handler gets beside the message: its headers, and ways to send."""

from datetime import timedelta
from typing import Any, Protocol

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.transport import headers as h
from pgqueue_admin.transport.composer import Types
from pgqueue_admin.transport.delays import Delay
from pgqueue_admin.transport.message import IncomingMessage, OutgoingMessage
from pgqueue_admin.transport.outbound import Outbound


class Desk(Protocol):
    """What a context needs of the task it belongs to."""

    def subscribers(self, topics: list[str]) -> list[Address]: ...
    def dispatch_now(self, outgoing: list[OutgoingMessage]) -> None: ...


class MessageContext:
    """Sends are kept until all handlers have succeeded; ``immediate=True`` sends at once, whatever becomes of them."""

    def __init__(self, message: IncomingMessage, connection: Connection | None, outbound: Outbound, desk: Desk):
        self.message = message
        self.connection = connection  # the receive transaction's session; None where there is no such transaction
        self.outgoing: list[OutgoingMessage] = []
        self._outbound = outbound
        self._desk = desk

    @property
    def headers(self) -> h.Headers:
        return self.message.headers

    @property
    def message_id(self) -> str:
        return self.message.message_id

    def send(
        self,
        destination: str | Address,
        message: Any,
        *,
        type: Types,
        headers: h.Headers | None = None,
        ttbr: timedelta | None = None,
        delay: Delay | None = None,
        immediate: bool = False,
    ) -> None:
        """``delay``: a duration, or until when. Raises ValueError together with ``ttbr``."""
        sent = self._outbound.send(destination, message, type, headers or {}, ttbr, self.message, delay=delay)
        self._take([sent], immediate)

    def reply(
        self,
        message: Any,
        *,
        type: Types,
        headers: h.Headers | None = None,
        ttbr: timedelta | None = None,
        immediate: bool = False,
    ) -> None:
        """To the address the message came with. Raises NoReplyAddress."""
        self._take([self._outbound.reply(message, type, headers or {}, ttbr, self.message)], immediate)

    def publish(
        self,
        message: Any,
        *,
        type: Types,
        headers: h.Headers | None = None,
        ttbr: timedelta | None = None,
        immediate: bool = False,
    ) -> None:
        """To every queue subscribed to the type or to one of the base types given with it."""
        find = self._desk.subscribers
        self._take(self._outbound.publish(message, type, headers or {}, ttbr, find, self.message), immediate)

    def _take(self, outgoing: list[OutgoingMessage], immediate: bool) -> None:
        if immediate:
            self._desk.dispatch_now(outgoing)
        else:
            self.outgoing += outgoing

"""The sending methods, shared by endpoints, handlers and callers' transactions."""

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.connection import ReceiveSession
from pgqueue_admin.transport.sending.bulk import FEW
from pgqueue_admin.transport.sending.dispatcher import Dispatcher, destinations
from pgqueue_admin.transport.sending.message_factory import MessageFactory, Sheet
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.delivery_delay import Delay
from pgqueue_admin.transport.wire.header_composer import Types
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage


class SendApi:
    """Sends. A subclass decides when messages are written. ``immediate``: commit at once, outside any transaction.

    Bytes are sent unchanged, anything else by the endpoint's serializer.
    """

    _cause: IncomingMessage | None = None  # the message being handled, to which sends are related

    def __init__(self, outbound: MessageFactory):
        self._outbound = outbound

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
    ) -> str:
        """Send one message and return its id.

        ``delay``: a duration or a due time; with ``ttbr`` it raises ValueError. Until then the message waits in the
        endpoint's own delayed table, which a receiving instance empties. A destination without queue raises
        TableMissing; a delayed message detects that only when due, and is handled as exhausted.
        """
        made = self._outbound.send(destination, message, type, headers or {}, ttbr, self._cause, delay=delay)
        self._take([made], immediate)
        return made.message_id or ""

    def send_many(
        self,
        destination: str | Address,
        messages: Iterable[Any],
        *,
        type: Types,
        headers: h.Headers | None = None,
        ttbr: timedelta | None = None,
        delay: Delay | None = None,
        immediate: bool = False,
    ) -> list[str]:
        """Send all or none, in this order; a few in one round trip, many by COPY (T8). Return their ids."""
        given, all_of_them = headers or {}, list(messages)
        at_once = ttbr is None and delay is None and h.MESSAGE_ID not in given and self._outbound.is_plain
        if at_once and len(all_of_them) > FEW:
            sheets = self._outbound.sheets(destination, all_of_them, type, given, self._cause)
            if taken := self._take_while_made(*sheets):
                return taken
        made = list(self._outbound.send_many(destination, all_of_them, type, given, ttbr, self._cause, delay=delay))
        self._take(made, immediate)
        return [each.message_id or "" for each in made]

    def publish(
        self,
        message: Any,
        *,
        type: Types,
        headers: h.Headers | None = None,
        ttbr: timedelta | None = None,
        immediate: bool = False,
    ) -> str:
        """Send to every queue subscribed to the type or a given base type. Return the id, empty without subscribers."""
        copies = self._outbound.publish(message, type, headers or {}, ttbr, self._subscribers, self._cause)
        self._take(copies, immediate)
        return copies[0].message_id or "" if copies else ""

    def _take(self, outgoing: list[OutgoingMessage], immediate: bool) -> None:
        raise NotImplementedError

    def _take_while_made(self, destination: Address, sheets: Iterator[Sheet]) -> list[str]:
        """Send distinct messages in bulk. Return their ids; none if ``_take`` must send them."""
        return []

    def _subscribers(self, topics: list[str]) -> list[Address]:
        raise NotImplementedError


class ExternalTransaction(SendApi):
    """Sends in the caller's transaction: it never begins, commits or rolls back. An autocommit session commits each
    statement of it, too."""

    def __init__(
        self,
        outbound: MessageFactory,
        sender: Dispatcher,
        subscriptions: Subscriptions,
        session: ReceiveSession,
        tell: Callable[[set[Address]], None],
        at_once: Callable[[list[OutgoingMessage]], None],
    ):
        """``tell`` wakes receivers once the caller commits; ``at_once`` sends and commits by itself."""
        super().__init__(outbound)
        self._sender, self._subscriptions, self._session = sender, subscriptions, session
        self._tell, self._at_once = tell, at_once

    def _take(self, outgoing: list[OutgoingMessage], immediate: bool) -> None:
        if immediate:
            return self._at_once(outgoing)
        self._sender.dispatch(self._session, outgoing)
        self._sender.stored(outgoing)
        self._tell(destinations(outgoing))

    def _subscribers(self, topics: list[str]) -> list[Address]:
        return self._subscriptions.subscribers(self._session, topics)

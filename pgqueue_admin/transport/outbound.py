"""Makes the outgoing messages of a send, a publish or a reply; shared by endpoint and handler context."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from pgqueue_admin.dialects import Address, Dialect
from pgqueue_admin.transport import addresses, delays
from pgqueue_admin.transport import headers as h
from pgqueue_admin.transport.composer import PUBLISH, REPLY, SEND, Composer, Types
from pgqueue_admin.transport.delays import Delay
from pgqueue_admin.transport.errors import NoReplyAddress
from pgqueue_admin.transport.message import IncomingMessage, OutgoingMessage
from pgqueue_admin.transport.type_names import full_name, split_types

Subscribers = Callable[[list[str]], list[Address]]


class Outbound:
    """Who gets what, with which headers; nothing is written here."""

    def __init__(self, dialect: Dialect, schema: str, composer: Composer):
        self._dialect = dialect
        self._schema = schema
        self._composer = composer

    def send(
        self,
        destination: str | Address,
        message: Any,
        types: Types,
        headers: h.Headers,
        ttbr: timedelta | None,
        incoming: IncomingMessage | None = None,
        intent: str = SEND,
        delay: Delay | None = None,
    ) -> OutgoingMessage:
        made, body = self._composer.compose(message, types, intent, headers, ttbr, incoming)
        if delay is not None:
            delays.check(delay, ttbr)
            sent = h.parse_time(made[h.TIME_SENT]) or datetime.now(UTC)
            made = delays.headers(made, delay, self._as_given(destination), since=sent)
        return OutgoingMessage(self._address(destination), made, body, ttbr, delay)

    def _address(self, destination: str | Address) -> Address:
        return addresses.resolve(self._dialect, destination, self._schema)

    def _as_given(self, destination: str | Address) -> str:
        return destination if isinstance(destination, str) else self._dialect.canonical(destination)

    def reply(
        self, message: Any, types: Types, headers: h.Headers, ttbr: timedelta | None, incoming: IncomingMessage
    ) -> OutgoingMessage:
        address = incoming.headers.get(h.REPLY_TO_ADDRESS)
        if not address:
            raise NoReplyAddress(f"message {incoming.message_id} has no {h.REPLY_TO_ADDRESS} header to reply to")
        return self.send(address, message, types, {**_saga(incoming), **headers}, ttbr, incoming, REPLY)

    def publish(
        self,
        message: Any,
        types: Types,
        headers: h.Headers,
        ttbr: timedelta | None,
        subscribers: Subscribers,
        incoming: IncomingMessage | None = None,
    ) -> list[OutgoingMessage]:
        """One message per subscribed queue, all with the same id."""
        made, body = self._composer.compose(message, types, PUBLISH, headers, ttbr, incoming)
        return [OutgoingMessage(address, made, body, ttbr) for address in subscribers(topics(types))]


def _saga(incoming: IncomingMessage) -> h.Headers:
    """A saga that asked finds itself in the reply."""
    asked = {h.SAGA_ID: h.ORIGINATING_SAGA_ID, h.SAGA_TYPE: h.ORIGINATING_SAGA_TYPE}
    return {name: incoming.headers[theirs] for name, theirs in asked.items() if incoming.headers.get(theirs)}


def topics(types: Types) -> list[str]:
    """The type as given and its bases as given; with ``System.Object``, which every class is."""
    enclosed = types if isinstance(types, str) else ";".join(types)
    return [*(full_name(each) for each in split_types(enclosed)), "System.Object"]

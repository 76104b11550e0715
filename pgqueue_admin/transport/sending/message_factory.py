"""Builds the outgoing messages of a send, publish or reply, for endpoints and handlers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.errors import NoReplyAddress
from pgqueue_admin.transport.tracing import Tracing
from pgqueue_admin.transport.wire import delivery_delay
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.addresses import Addressing
from pgqueue_admin.transport.wire.delivery_delay import Delay
from pgqueue_admin.transport.wire.header_composer import PUBLISH, REPLY, SEND, HeaderComposer, Types
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage
from pgqueue_admin.transport.wire.type_names import full_name, split_types
from pgqueue_admin.transport.wire.wire_times import parse_time

MutateOutgoing = Callable[[OutgoingMessage, IncomingMessage | None], OutgoingMessage]
Subscribers = Callable[[list[str]], list[Address]]
Sheet = tuple[str, str, bytes]  # a message's id, its headers as text, its body


class MessageFactory:
    """Makes messages: destination, headers, body; writes nothing to a queue."""

    def __init__(
        self,
        addressing: Addressing,
        composer: HeaderComposer,
        may_delay: bool = True,
        mutate: tuple[MutateOutgoing, ...] = (),
        tracing: Tracing | None = None,
    ):
        self._addressing = addressing
        self._composer = composer
        self._may_delay = may_delay
        self._mutate = mutate
        self._tracing = tracing
        self.is_plain = not (tracing or mutate)  # nothing changes messages before sending

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
        """``message``: any object that the serializer accepts. Raises AddressUnreadable, and ValueError for invalid
        types, ``ttbr`` or ``delay``.
        """
        return self._maker(destination, types, headers, ttbr, incoming, intent, delay)(message)

    def send_many(
        self,
        destination: str | Address,
        messages: Iterable[Any],
        types: Types,
        headers: h.Headers,
        ttbr: timedelta | None,
        incoming: IncomingMessage | None = None,
        intent: str = SEND,
        delay: Delay | None = None,
    ) -> Iterator[OutgoingMessage]:
        """Check arguments at once; make each message lazily."""
        return map(self._maker(destination, types, headers, ttbr, incoming, intent, delay), messages)

    def sheets(
        self,
        destination: str | Address,
        messages: Iterable[Any],
        types: Types,
        headers: h.Headers,
        incoming: IncomingMessage | None = None,
    ) -> tuple[Address, Iterator[Sheet]]:
        """As ``send_many``, for plain messages without delay and expiry."""
        written = self._composer.letterhead(types, SEND, headers, None, incoming).written
        body = self._composer.body
        return self._addressing.resolve(destination), (
            (own, text, body(message)) for message in messages for own, text in [written()]
        )

    def _maker(
        self,
        destination: str | Address,
        types: Types,
        headers: h.Headers,
        ttbr: timedelta | None,
        incoming: IncomingMessage | None,
        intent: str,
        delay: Delay | None,
    ) -> Callable[[Any], OutgoingMessage]:
        letterhead = self._composer.letterhead(types, intent, headers, ttbr, incoming)
        if delay is not None:
            delivery_delay.check(delay, ttbr, self._may_delay)
        address = self._addressing.resolve(destination)
        if delay is None and self.is_plain:
            written, body = letterhead.headers, self._composer.body
            return lambda message: OutgoingMessage(address, written(), body(message), ttbr)

        def made(message: Any) -> OutgoingMessage:
            written = letterhead.headers()
            headers = dict(written) if delay is None else self._kept_back(written, delay, destination)
            body = self._composer.body(message)
            return self._made(OutgoingMessage(address, self._traced(headers), body, ttbr, delay), incoming)

        return made

    def _kept_back(self, headers: Mapping[str, str | None], delay: Delay, destination: str | Address) -> h.Headers:
        sent = parse_time(headers[h.TIME_SENT]) or datetime.now(UTC)
        return delivery_delay.headers(dict(headers), delay, self._as_given(destination), since=sent)

    def _as_given(self, destination: str | Address) -> str:
        return destination if isinstance(destination, str) else self._addressing.canonical(destination)

    def reply(
        self, message: Any, types: Types, headers: h.Headers, ttbr: timedelta | None, incoming: IncomingMessage
    ) -> OutgoingMessage:
        """As ``send``, to the reply address of ``incoming``. Raises NoReplyAddress if it has none."""
        asked_by = {**_saga(incoming), **headers}
        return self.send(_reply_to(incoming), message, types, asked_by, ttbr, incoming, REPLY)

    def reply_code(self, code: int, headers: h.Headers, incoming: IncomingMessage) -> OutgoingMessage:
        """A reply with only a number: a control message without a body."""
        made = self._traced(self._composer.compose_code(code, {**_saga(incoming), **headers}, incoming))
        return self._made(OutgoingMessage(self._addressing.resolve(_reply_to(incoming)), made, b""), incoming)

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
        written = self._composer.letterhead(types, PUBLISH, headers, ttbr, incoming).headers()
        made, body = self._traced(dict(written)), self._composer.body(message)
        copies = [OutgoingMessage(address, made, body, ttbr) for address in subscribers(topics(types))]
        return [self._made(each, incoming) for each in copies]

    def _traced(self, headers: h.Headers) -> h.Headers:
        return self._tracing.sent(headers) if self._tracing else headers

    def _made(self, message: OutgoingMessage, cause: IncomingMessage | None) -> OutgoingMessage:
        for mutate in self._mutate:
            message = mutate(message, cause)
        return message


def _reply_to(incoming: IncomingMessage) -> str:
    address = incoming.headers.get(h.REPLY_TO_ADDRESS)
    if not address:
        raise NoReplyAddress(f"message {incoming.message_id} has no {h.REPLY_TO_ADDRESS} header to reply to")
    return address


def _saga(incoming: IncomingMessage) -> h.Headers:
    """The requesting saga's id and type, by which it finds itself in the reply."""
    asked = {h.SAGA_ID: h.ORIGINATING_SAGA_ID, h.SAGA_TYPE: h.ORIGINATING_SAGA_TYPE}
    return {name: incoming.headers[theirs] for name, theirs in asked.items() if incoming.headers.get(theirs)}


def topics(types: Types) -> list[str]:
    """The type and its bases as given; with ``System.Object``, the base of every class."""
    enclosed = types if isinstance(types, str) else ";".join(types)
    return [*(full_name(each) for each in split_types(enclosed)), "System.Object"]

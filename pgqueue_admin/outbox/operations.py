"""A record's messages to send, as JSON (outbox sheet 4): interchangeable with the original's."""

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.transport.sending.message_factory import topics
from pgqueue_admin.transport.wire import delivery_delay
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.addresses import Addressing
from pgqueue_admin.transport.wire.delivery_delay import Delay
from pgqueue_admin.transport.wire.ids import new_ids
from pgqueue_admin.transport.wire.message import OutgoingMessage
from pgqueue_admin.transport.wire.wire_times import LONGEST_SPAN, parse_time, parse_timespan, wire_time, wire_timespan

NOTHING = "[]"
_BLANKS = dict.fromkeys(map(ord, " \t\r\n"))

Subscribers = Callable[[list[str]], list[Address]]


class OperationsUnreadable(ValueError):
    """What a record of the outbox is to send cannot be read: it waits, and nothing of it is sent."""

    def __init__(self, detail: str):
        super().__init__(f"{(self.__doc__ or '').rstrip('.')}. {detail}")


def dump(outgoing: Sequence[OutgoingMessage], addressing: Addressing) -> str:
    """Every message has a destination address: subscribers were looked up when the event was published."""
    return orjson.dumps([_operation(each, addressing) for each in outgoing]).decode() if outgoing else NOTHING


def _operation(message: OutgoingMessage, addressing: Addressing) -> dict[str, object]:
    """A confirmation to the platform has no id in its headers; its operation has one, as the original's."""
    return {
        "MessageId": message.message_id or new_ids()[0],
        "Headers": dict(message.headers),
        "Body": base64.b64encode(message.body).decode(),
        "Options": {"Destination": addressing.canonical(message.destination), **_options(message)},
    }


def _options(message: OutgoingMessage) -> dict[str, str]:
    options = {} if message.ttbr is None else {"TimeToBeReceived": wire_timespan(message.ttbr)}
    if isinstance(message.delay, timedelta):
        options["DelayDeliveryFor"] = wire_timespan(message.delay)
    elif message.delay is not None:
        options["DeliverAt"] = wire_time(message.delay)
    return options


def load(text: str, addressing: Addressing, subscribers: Subscribers) -> list[OutgoingMessage]:
    """``subscribers``: the queues subscribed to any of these topics, for published events. Raises
    OperationsUnreadable."""
    try:
        found: Iterable[Any] = orjson.loads(text)
        return [message for each in found for message in _messages(each, addressing, subscribers)]
    except (TypeError, KeyError, AttributeError, ValueError, OverflowError, binascii.Error) as error:
        if isinstance(error, OperationsUnreadable):
            raise
        raise OperationsUnreadable(f"{type(error).__name__}: {error}") from error


def _messages(operation: dict[str, Any], addressing: Addressing, subscribers: Subscribers) -> list[OutgoingMessage]:
    headers, body = _headers(operation), _body(operation.get("Body"))
    options: dict[str, str] = operation.get("Options", {})
    ttbr, delay = _ttbr(options), _delay(options)
    if delay is not None and h.FORWARD_DESTINATION not in headers:
        headers = delivery_delay.headers(headers, delay, options["Destination"], since=datetime.now(UTC))
    h.dump(headers)  # raises HeadersUnreadable for what no message can have
    return [
        OutgoingMessage(each, headers, body, ttbr, delay)
        for each in _destinations(options, headers, addressing, subscribers)
    ]


def _headers(operation: dict[str, Any]) -> h.Headers:
    """Without an id its copies could not be recognised, and two messages to one queue would count as one."""
    headers: h.Headers = {h.MESSAGE_ID: None, **operation.get("Headers", {})}
    headers[h.MESSAGE_ID] = headers[h.MESSAGE_ID] or operation["MessageId"]
    if not headers[h.MESSAGE_ID]:
        raise OperationsUnreadable("A message in it has no MessageId.")
    return headers


def _body(said: Any) -> bytes:
    """As .NET reads base64: blanks and line ends, which databases insert, are ignored."""
    if not isinstance(said, str | None):
        raise OperationsUnreadable("The Body of a message in it is no text.")
    return base64.b64decode((said or "").translate(_BLANKS), validate=True)


def _destinations(
    options: dict[str, str], headers: h.Headers, addressing: Addressing, subscribers: Subscribers
) -> list[Address]:
    """By address; an event by the types in its headers, even if its class was renamed since."""
    if "Destination" in options:
        try:
            return [addressing.resolve(options["Destination"])]
        except AddressUnreadable as error:
            raise OperationsUnreadable(str(error)) from error
    if not options.get("EventType"):
        raise OperationsUnreadable("A message in it has neither a Destination nor an EventType: it would go nowhere.")
    return subscribers(topics(headers.get(h.ENCLOSED_MESSAGE_TYPES) or options["EventType"]))


def _ttbr(options: dict[str, str]) -> timedelta | None:
    said = options.get("TimeToBeReceived")
    span = parse_timespan(said)
    if said and span is None:
        raise OperationsUnreadable(f"TimeToBeReceived is {said!r}, which is no time span.")
    return None if span and span > LONGEST_SPAN else span  # .NET's maximum means for ever


def _delay(options: dict[str, str]) -> Delay | None:
    """If both are given, the instant wins, as in the original's dispatcher."""
    span, at = parse_timespan(options.get("DelayDeliveryFor")), parse_time(options.get("DeliverAt"))
    if span is None and at is None and (said := options.get("DelayDeliveryFor") or options.get("DeliverAt")):
        raise OperationsUnreadable(f"A delay is {said!r}, which is neither a time nor a time span.")
    return at if at is not None else span

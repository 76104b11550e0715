"""The messages in a record of an outbox, as far as a person may read them."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from pgqueue_admin.formatting import durations
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.masking.message_types import types_of
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import parse_time, parse_timespan

SHOWN = 10_000  # characters of a body


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """A message as recorded: nothing is hidden yet, and its contents are not trusted."""

    id: str
    headers: h.Headers
    body: bytes
    options: Mapping[str, str]

    @property
    def type(self) -> str:
        return (h.types_in(self.headers.get(h.ENCLOSED_MESSAGE_TYPES) or "") or ("",))[0]

    @property
    def types(self) -> tuple[str, ...]:
        return types_of(self.headers.get(h.ENCLOSED_MESSAGE_TYPES))

    @property
    def kind(self) -> str:
        return "publish" if "EventType" in self.options else "send"

    @property
    def to(self) -> str:
        return self.options.get("Destination", "")

    @property
    def due_at(self) -> datetime | None:
        """When it is due, whenever it is sent."""
        return parse_time(self.options.get("DeliverAt"))

    @property
    def delay(self) -> timedelta | None:
        """Its delay, counted from when it is sent."""
        return parse_timespan(self.options.get("DelayDeliveryFor"))

    @property
    def when(self) -> str:
        if "DelayDeliveryFor" in self.options:
            said = self.options["DelayDeliveryFor"]
            held = durations.duration(self.delay.total_seconds()) if self.delay is not None else said
            return f"delayed by {held} from when it is sent"
        return f"at {self.options['DeliverAt']}" if "DeliverAt" in self.options else "at once"


@dataclass(frozen=True, slots=True)
class RecordedSend:
    """``body``: the readable part, cut; ``hidden``: why nothing, or not all, may be read."""

    id: str
    type: str
    kind: str
    to: str
    when: str
    size: int
    headers: Mapping[str, str | None]
    body: str
    hidden: str


def messages_of(text: str) -> list[RecordedMessage] | None:
    """Parse the messages, unmasked: callers mask them with ``ContentAccess``. None: it is no list of messages."""
    try:
        return [_message(each) for each in orjson.loads(text)]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def operations_of(text: str, access: ContentAccess) -> list[RecordedSend] | None:
    """Return a masked line for each message; None as in ``messages_of``."""
    found = messages_of(text)
    return None if found is None else [_send(each, access) for each in found]


def _message(operation: Mapping[str, Any]) -> RecordedMessage:
    headers = {str(name): None if value is None else str(value) for name, value in _texts(operation, "Headers")}
    options = {str(name): str(value) for name, value in _texts(operation, "Options")}
    body = base64.b64decode(operation.get("Body") or "")
    return RecordedMessage(str(operation["MessageId"]), headers, body, options)


def _texts(operation: Mapping[str, Any], name: str) -> Any:
    found: Mapping[str, Any] = operation.get(name, {})
    return found.items()


def _send(message: RecordedMessage, access: ContentAccess) -> RecordedSend:
    shown, hidden = _readable(message, access)
    return RecordedSend(
        id=message.id,
        type=message.type,
        kind=message.kind,
        to=message.to,
        when=message.when,
        size=len(message.body),
        headers=access.headers(message.headers, message.types),
        body=shown,
        hidden=hidden,
    )


def _readable(message: RecordedMessage, access: ContentAccess) -> tuple[str, str]:
    if access.refusal:
        return "", access.refusal
    masked = access.body(message.body, message.headers.get(h.CONTENT_TYPE), message.types)
    raw, hidden = (message.body, "") if masked is None else (masked.content or b"", masked.hidden)
    text = raw.decode("utf-8-sig", "replace")
    cut = f"{len(text) - SHOWN:,} more characters are not shown." if len(text) > SHOWN else ""
    return text[:SHOWN], " ".join(filter(None, [hidden, cut]))

"""What a record of an outbox is to send, as far as a person may read it."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from pgqueue_admin.services.content_access import ContentAccess, types_of
from pgqueue_admin.transport.wire import headers as h

SHOWN = 10_000  # characters of a body


@dataclass(frozen=True, slots=True)
class RecordedSend:
    """``body``: what may be read of it, cut; ``hidden``: why nothing, or not all, is."""

    id: str
    type: str
    kind: str
    to: str
    when: str
    size: int
    headers: Mapping[str, str | None]
    body: str
    hidden: str


def operations_of(text: str, access: ContentAccess) -> list[RecordedSend] | None:
    """A line each; None: it cannot be read as a list of messages."""
    try:
        return [_send(each, access) for each in orjson.loads(text)]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _send(operation: Mapping[str, Any], access: ContentAccess) -> RecordedSend:
    options, body = operation.get("Options", {}), base64.b64decode(operation.get("Body") or "")
    headers = {str(name): None if value is None else str(value) for name, value in _headers(operation).items()}
    types = types_of(headers.get(h.ENCLOSED_MESSAGE_TYPES))
    shown, hidden = _readable(body, headers, types, access)
    return RecordedSend(
        id=str(operation["MessageId"]),
        type=(h.types_in(headers.get(h.ENCLOSED_MESSAGE_TYPES) or "") or ("",))[0],
        kind="publish" if "EventType" in options else "send",
        to=str(options.get("Destination", "")),
        when=_when(options),
        size=len(body),
        headers={} if access.refusal else access.headers(headers, types),
        body=shown,
        hidden=hidden,
    )


def _headers(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    headers: Mapping[str, Any] = operation.get("Headers", {})
    return headers


def _readable(body: bytes, headers: h.Headers, types: tuple[str, ...], access: ContentAccess) -> tuple[str, str]:
    if access.refusal:
        return "", access.refusal
    masked = access.body(body, headers.get(h.CONTENT_TYPE), types)
    raw, hidden = (body, "") if masked is None else (masked.content or b"", masked.hidden)
    text = raw.decode("utf-8-sig", "replace")
    cut = f"{len(text) - SHOWN:,} more characters are not shown." if len(text) > SHOWN else ""
    return text[:SHOWN], " ".join(filter(None, [hidden, cut]))


def _when(options: Mapping[str, Any]) -> str:
    if "DelayDeliveryFor" in options:
        return f"delayed by {options['DelayDeliveryFor']}"
    return f"at {options['DeliverAt']}" if "DeliverAt" in options else "at once"

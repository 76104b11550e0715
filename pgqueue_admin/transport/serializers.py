"""Bodies: what becomes of an object on the way out and of bytes on the way in (T5)."""

import json
from typing import Any, Protocol

from pgqueue_admin.transport.errors import MessageUnreadable
from pgqueue_admin.transport.texts import decode

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode  # dumps() makes one a call


class Serializer(Protocol):
    content_type: str

    def dump(self, message: Any) -> bytes: ...
    def load(self, body: bytes) -> Any: ...


class Json:
    """The default. A UTF-8 byte order mark in front is accepted, as endpoints do."""

    content_type = "application/json"

    def dump(self, message: Any) -> bytes:
        return _encode(message).encode("utf-8")

    def load(self, body: bytes) -> Any:
        return decode(body.decode("utf-8").removeprefix("\ufeff"))


class Raw:
    """Bytes as they are."""

    content_type = "application/octet-stream"

    def dump(self, message: bytes) -> bytes:
        return bytes(message)

    def load(self, body: bytes) -> bytes:
        return body


class Serializers:
    """An endpoint's main serializer, and those it can read besides, by exact content type."""

    def __init__(self, main: Serializer | None = None, *others: Serializer):
        self.main: Serializer = main or Json()
        self._by_type = {each.content_type: each for each in (*others, self.main)}

    def dump(self, message: Any) -> bytes:
        """Bytes are taken as they are."""
        return bytes(message) if isinstance(message, bytes | bytearray | memoryview) else self.main.dump(message)

    def load(self, body: bytes, content_type: str | None) -> Any:
        """An unknown content type is read as the main one. Raises MessageUnreadable."""
        serializer = self._by_type.get(content_type or "", self.main)
        try:
            return serializer.load(body)
        except Exception as error:
            raise MessageUnreadable(
                f"the body is not {serializer.content_type}: {error} (its headers say {content_type or 'nothing'})"
            ) from error

"""Serializers: objects to bodies and back (T5)."""

import json
import re
from enum import Enum
from typing import Any, Protocol

import orjson

from pgqueue_admin.transport.errors import MessageUnreadable

_LONG = re.compile(rb"\d{19}")  # orjson would round numbers beyond 64 bits
_BYTES = (bytes, bytearray, memoryview)
_AS_JSON_DOES = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS


class Serializer(Protocol):
    content_type: str

    def dump(self, message: Any) -> bytes: ...
    def load(self, body: bytes) -> Any: ...


class JsonSerializer:
    """The default. Accepts a UTF-8 byte order mark, as endpoints do."""

    content_type = "application/json"

    def dump(self, message: Any) -> bytes:
        try:
            body = orjson.dumps(message, option=_AS_JSON_DOES)
        except orjson.JSONEncodeError:
            return _dump(message)
        return body if b"null" not in body else _dump(message)  # NaN would be null

    def load(self, body: bytes) -> Any:
        if not _LONG.search(body):
            try:
                return orjson.loads(body)
            except orjson.JSONDecodeError:  # it refuses more than endpoints do
                pass
        return json.loads(body.decode("utf-8").removeprefix("\ufeff"))


def _text(value: Any) -> Any:
    """JSON form of other objects: an enumeration's member as its value, anything else as its text."""
    return value.value if isinstance(value, Enum) else str(value)


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_text).encode  # dumps() makes one a call


def _dump(message: Any) -> bytes:
    return _encode(message).encode("utf-8")


class RawSerializer:
    """Leaves bytes unchanged."""

    content_type = "application/octet-stream"

    def dump(self, message: bytes) -> bytes:
        return bytes(message)

    def load(self, body: bytes) -> bytes:
        return body


class Serializers:
    """An endpoint's main serializer, and others for reading, by exact content type."""

    def __init__(self, main: Serializer | None = None, *others: Serializer):
        self.main: Serializer = main or JsonSerializer()
        self._by_type = {each.content_type: each for each in (*others, self.main)}

    def dump(self, message: Any) -> bytes:
        """Serialize a message; bytes are unchanged."""
        return bytes(message) if isinstance(message, _BYTES) else self.main.dump(message)

    def load(self, body: bytes, content_type: str | None) -> Any:
        """Deserialize a body; an unknown content type is read as the main one. Raises MessageUnreadable."""
        serializer = self._by_type.get(content_type or "", self.main)
        try:
            return serializer.load(body)
        except Exception as error:
            raise MessageUnreadable(
                f"the body is not {serializer.content_type}: {error} (its headers say {content_type or 'nothing'})"
            ) from error

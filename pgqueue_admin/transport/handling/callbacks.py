"""Callbacks: matches replies in this instance's queue to waiting requests (T1)."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.header_composer import REPLY
from pgqueue_admin.transport.wire.message import IncomingMessage

log = logging.getLogger("pgqueue_admin.transport")


class ReplyTimeout(TimeoutError):
    """The answer did not come in time. A later one is acknowledged and logged."""


@dataclass(frozen=True, slots=True)
class Reply:
    """``body`` as deserialized; None for a number, which is ``error_code``."""

    body: Any
    headers: h.Headers
    error_code: int | None = None


class PendingRequest:
    """A request that was sent."""

    def __init__(self, message_id: str, forget: Callable[[str], None]):
        self.message_id = message_id
        self._forget = forget
        self._answered = threading.Event()
        self._reply: Reply | None = None

    def reply(self, timeout: float) -> Reply:
        """Wait at most so many seconds. Raises ReplyTimeout, and then no longer expects a reply."""
        self._answered.wait(timeout)
        self._forget(self.message_id)
        if self._reply is None:
            raise ReplyTimeout(f"nobody has answered message {self.message_id} within {timeout:g} s")
        return self._reply

    def answer(self, reply: Reply) -> None:
        self._reply = reply
        self._answered.set()


class Callbacks:
    """Open requests by message id. A request that is no longer referenced is forgotten."""

    def __init__(self, queue: Address | None):
        self._queue = queue
        self._waiting: WeakValueDictionary[str, PendingRequest] = WeakValueDictionary()

    def asked(self) -> PendingRequest:
        asked = PendingRequest(str(uuid4()), self._forget)
        self._waiting[asked.message_id] = asked
        return asked

    def takes(self, message: IncomingMessage) -> bool:
        """Whether it is a reply that needs no handler: a request waits, or it came to the instance's queue, which gets
        only replies."""
        is_reply = message.headers.get(h.MESSAGE_INTENT) == REPLY
        return is_reply and (message.queue == self._queue or _correlation(message) in self._waiting)

    def answer(self, message: IncomingMessage, body: Any, handled: bool = False) -> None:
        """Pass the reply to its request. Call after the commit: before, the message could be received again."""
        asked = self._waiting.pop(_correlation(message), None)
        if asked:
            asked.answer(Reply(body, message.headers, _error_code(message)))
        elif not handled:
            said = "Nobody waits any more for the reply %s to message %s: it is acknowledged"
            log.warning(said, message.message_id, _correlation(message))

    def _forget(self, message_id: str) -> None:
        self._waiting.pop(message_id, None)


def _correlation(message: IncomingMessage) -> str:
    return message.headers.get(h.CORRELATION_ID) or ""


def _error_code(message: IncomingMessage) -> int | None:
    try:
        return int(message.headers.get(h.ERROR_CODE) or "")
    except ValueError:
        return None

"""Callbacks: matches replies in this instance's queue with the requests that wait for them (T1)."""

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
    """``body`` as its serializer read it; None for a number, which is ``error_code``."""

    body: Any
    headers: h.Headers
    error_code: int | None = None


class PendingRequest:
    """A question that was sent."""

    def __init__(self, message_id: str, forget: Callable[[str], None]):
        self.message_id = message_id
        self._forget = forget
        self._answered = threading.Event()
        self._reply: Reply | None = None

    def reply(self, timeout: float) -> Reply:
        """Wait that many seconds at most. Raises ReplyTimeout; the question is then no longer waited for."""
        self._answered.wait(timeout)
        self._forget(self.message_id)
        if self._reply is None:
            raise ReplyTimeout(f"nobody has answered message {self.message_id} within {timeout:g} s")
        return self._reply

    def answer(self, reply: Reply) -> None:
        self._reply = reply
        self._answered.set()


class Callbacks:
    """Questions without an answer, by message id. One that nobody holds any more is forgotten by itself."""

    def __init__(self, queue: Address | None):
        self._queue = queue
        self._waiting: WeakValueDictionary[str, PendingRequest] = WeakValueDictionary()

    def asked(self) -> PendingRequest:
        asked = PendingRequest(str(uuid4()), self._forget)
        self._waiting[asked.message_id] = asked
        return asked

    def takes(self, message: IncomingMessage) -> bool:
        """Whether it needs no handler: somebody waits for it, or did and went; only callbacks come to that queue."""
        is_reply = message.headers.get(h.MESSAGE_INTENT) == REPLY
        return is_reply and (message.queue == self._queue or _correlation(message) in self._waiting)

    def answer(self, message: IncomingMessage, body: Any, handled: bool = False) -> None:
        """After the commit: until then the message could come again."""
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

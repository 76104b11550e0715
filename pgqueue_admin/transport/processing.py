"""What happens to one received message, whatever the transaction it came in."""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import TransactionTooLong
from pgqueue_admin.transport import acknowledging, delayed_retries
from pgqueue_admin.transport import headers as h
from pgqueue_admin.transport.breaker import CircuitBreaker
from pgqueue_admin.transport.context import Desk, MessageContext
from pgqueue_admin.transport.errors import MessageUnreadable, NoHandler, Unrecoverable
from pgqueue_admin.transport.exhaustion import Exhaustion
from pgqueue_admin.transport.failure import Failure, failure_of, type_name
from pgqueue_admin.transport.forwarding import PASSING, Forwarding
from pgqueue_admin.transport.handlers import Handler, Handlers
from pgqueue_admin.transport.message import IncomingMessage, OutgoingMessage
from pgqueue_admin.transport.outbound import Outbound
from pgqueue_admin.transport.ports import Observer
from pgqueue_admin.transport.recoverability import Failures, may_retry
from pgqueue_admin.transport.replies import Replies
from pgqueue_admin.transport.serializers import Serializers
from pgqueue_admin.transport.settings import EndpointSettings

log = logging.getLogger("pgqueue_admin.transport")

Told = Callable[[], None]


class AttemptFailed(Exception):
    """A handler, or the dispatch of what it sent, raised. No ``failure``: it was our own session that was lost."""

    def __init__(self, error: BaseException, failure: Failure | None):
        self.error = error
        self.failure = failure
        super().__init__(str(type(error)))


class NotTaken(Exception):
    """Neither archive nor error queue could take an exhausted message. ``pause``: seconds until the next attempt."""

    def __init__(self, said: str, pause: float):
        self.pause = pause
        super().__init__(said)


class Transaction(Desk, Protocol):
    """What processing needs of the receive mode."""

    def to_give_up(self) -> AbstractContextManager[Connection]:
        """The transaction in which an exhausted message is put away."""

    @property
    def lost(self) -> bool:
        """The session that holds the message is gone, and the message with it back in its queue."""

    def dispatch(self, outgoing: list[OutgoingMessage]) -> None: ...
    def dispatch_with_receive(self, outgoing: list[OutgoingMessage]) -> None: ...


@dataclass(frozen=True, slots=True)
class Processing:
    endpoint: str
    handlers: Handlers
    serializers: Serializers
    outbound: Outbound
    forwarding: Forwarding
    exhaustion: Exhaustion
    failures: Failures
    observer: Observer
    settings: Callable[[], EndpointSettings]
    breaker: CircuitBreaker
    replies: Replies

    def process(self, message: IncomingMessage, transaction: Transaction) -> Told:
        """Handle, drop or give up. Return what to tell the observer once that is committed. Raises AttemptFailed."""
        if message.expired and not message.headers_lost:
            return lambda: self.observer.expired(message.type)
        if self.forwarding.leaves(message):
            return self._forward(message, transaction)
        return self._process_here(message.at_its_destination() if message.forward_to else message, transaction)

    def _process_here(self, message: IncomingMessage, transaction: Transaction) -> Told:
        self.observer.received(message.type, message.time_to_be_received)
        if nothing_to_handle(message):
            return lambda: self._answered(message)
        if failed := self.exhausted(message):
            return self._retry_later(message, failed, transaction) or self.give_up(message, failed, transaction)
        try:
            body, handlers = self._read(message)
        except Unrecoverable as error:
            self.observer.failed(error)
            return self.give_up(message, self.failure(message, error), transaction)
        handled = self._handle(message, body, handlers, transaction)

        def told() -> None:
            handled()
            self._answered(message, body, bool(handlers))

        return told

    def exhausted(self, message: IncomingMessage) -> Failure | None:
        """Why it is not to be handled again at once."""
        failed = self.failures.of(message.row_id)
        return failed if failed and not may_retry(failed, self.settings().immediate_retries) else None

    def _forward(self, message: IncomingMessage, transaction: Transaction) -> Told:
        """Tried once, as the original does: what was refused is exhausted when it is received the next time."""
        if failed := self.failures.of(message.row_id):
            return self.give_up(message, failed, transaction)
        try:
            transaction.dispatch_with_receive([self.forwarding.onward(message)])
        except Exception as error:
            passing = transaction.lost or isinstance(error, PASSING)
            failure = None if passing else self.forwarding.failure(message, error, self.endpoint)
            raise AttemptFailed(error, failure and self.failures.remember(message.row_id, failure)) from error
        return lambda: None

    def _answered(self, message: IncomingMessage, body: Any = None, handled: bool = False) -> None:
        if self.replies.takes(message):
            self.replies.answer(message, body, handled)

    def failure(self, message: IncomingMessage, error: BaseException, data: dict[str, str] | None = None) -> Failure:
        recoverable = not isinstance(error, self.handlers.unrecoverable)
        return failure_of(error, self.endpoint, message.queue, recoverable=recoverable, data=data or {})

    def _read(self, message: IncomingMessage) -> tuple[Any, list[Handler]]:
        if message.unreadable:
            raise MessageUnreadable(message.unreadable)
        if not message.types:
            raise MessageUnreadable(f"the headers name no message type ({h.ENCLOSED_MESSAGE_TYPES})")
        handlers = self.handlers.of(message.types)
        if not handlers and not self.replies.takes(message):
            raise NoHandler(f"{self.endpoint} has no handler for {', '.join(message.types)}")
        return self.serializers.load(message.body, message.headers.get(h.CONTENT_TYPE)), handlers

    def _handle(self, message: IncomingMessage, body: Any, handlers: list[Handler], transaction: Transaction) -> Told:
        started = time.monotonic()
        context = MessageContext(message, self.outbound, transaction)
        data: dict[str, str] = {}
        try:
            for handler in handlers:
                data = _handler_data(handler, message)
                handler(body, context)
            transaction.dispatch([*context.outgoing, *acknowledging.of_retry(message, self.forwarding.addressing)])
        except BaseException as error:  # a handler that wants to exit ends its message, not this process
            raise AttemptFailed(error, self._remembered(message, error, data, transaction)) from error
        return lambda: self._succeeded(message, started)

    def _remembered(
        self, message: IncomingMessage, error: BaseException, data: dict[str, str], transaction: Transaction
    ) -> Failure | None:
        """Counted before the rollback, which is when somebody else may receive the message again."""
        if transaction.lost and not is_too_long(error):
            return None
        data = {**data, "Handler failure time": h.wire_time(datetime.now(UTC))}
        return self.failures.remember(message.row_id, self.failure(message, error, data))

    def _retry_later(self, message: IncomingMessage, failure: Failure, transaction: Transaction) -> Told | None:
        """None: no more delayed retries, or nowhere to keep the message until then."""
        settings = self.settings()
        if not delayed_retries.may_come_back(message, failure, settings, datetime.now(UTC)):
            return None
        try:
            later = delayed_retries.later(message, settings, self.forwarding.own_address(message))
            with transaction.to_give_up() as connection, connection.transaction():
                transaction.dispatch_with_receive([later])
        except Exception as error:
            if transaction.lost or isinstance(error, PASSING):
                raise
            log.error("Message %s gets no delayed retry: %s", message.message_id, error)
            return None
        log.warning("Message %s is tried again in %s: %s", message.message_id, later.delay, failure.message)
        return lambda: self._put_aside(message)

    def give_up(self, message: IncomingMessage, failure: Failure, transaction: Transaction) -> Told:
        """Put the message away. Raises NotTaken.

        The savepoint keeps the row ours: a failed statement outside of one would give its lock up at once.
        """
        try:
            with transaction.to_give_up() as connection, connection.transaction():
                self.exhaustion.take(connection, message, failure, self.settings())
        except Exception as error:
            said = f"message {message.message_id} could not be put away: {error}"
            raise NotTaken(said, self.breaker.failed(error)) from error
        return lambda: self._put_away(message)

    def _put_aside(self, message: IncomingMessage) -> None:
        self.failures.forget(message.row_id)
        self.observer.retried()

    def _put_away(self, message: IncomingMessage) -> None:
        self.failures.forget(message.row_id)
        self.breaker.succeeded()

    def _succeeded(self, message: IncomingMessage, started: float) -> None:
        self.failures.forget(message.row_id)
        self.observer.handled(time.monotonic() - started)
        sent = h.parse_time(message.headers.get(h.DELIVER_AT)) or h.parse_time(message.headers.get(h.TIME_SENT))
        if sent:
            self.observer.critical_time((datetime.now(UTC) - sent).total_seconds())


def is_too_long(error: BaseException) -> bool:
    """The session is lost, and it is the message's doing: its next attempt would end the same way."""
    return isinstance(error, TransactionTooLong)


def nothing_to_handle(message: IncomingMessage) -> bool:
    """A control message, or an empty body: acknowledged without a handler (wire sheet 2.5)."""
    return not message.unreadable and (message.body == b"" or h.is_control_message(message.headers))


def _handler_data(handler: Handler, message: IncomingMessage) -> dict[str, str]:
    return {
        "Message type": message.type,
        "Handler type": type_name(handler) if isinstance(handler, type) else _function_name(handler),
        "Handler start time": h.wire_time(datetime.now(UTC)),
        "Handler canceled": "False",
    }


def _function_name(handler: Handler) -> str:
    named: Any = handler if hasattr(handler, "__qualname__") else type(handler)
    return f"{named.__module__}.{named.__qualname__}"

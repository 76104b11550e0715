"""One handling attempt: deserialize the message, call its handlers, dispatch their sends."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pgqueue_admin.dialects.errors import TransactionTooLong
from pgqueue_admin.transport import logs
from pgqueue_admin.transport.errors import MessageUnreadable, NoHandler
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.handling.audit import AuditCopies
from pgqueue_admin.transport.handling.behaviours import BehaviourChain
from pgqueue_admin.transport.handling.callbacks import Callbacks
from pgqueue_admin.transport.handling.context import Handler, MessageContext
from pgqueue_admin.transport.handling.handlers import Handlers
from pgqueue_admin.transport.recoverability.executor import RecoverabilityExecutor
from pgqueue_admin.transport.sending.message_factory import MessageFactory
from pgqueue_admin.transport.sessions import fork_safety
from pgqueue_admin.transport.sync_call import name_of, ran
from pgqueue_admin.transport.tracing import Tracing
from pgqueue_admin.transport.unit_of_work import UnitOfWork
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.message import IncomingMessage
from pgqueue_admin.transport.wire.serializers import Serializers
from pgqueue_admin.transport.wire.wire_times import wire_now, wire_time

MOST_CONFLICTS = 100  # with other transactions; more count as the message's own failure


class AttemptFailed(Exception):
    """A handler or the dispatch of its sends raised. ``failure`` None: it is not the message's fault."""

    def __init__(self, error: BaseException, failure: Failure | None):
        self.error = error
        self.failure = failure
        super().__init__(str(type(error)))


class EmptyMessage(Exception):
    """The message is empty, and acknowledged without a handler."""


class Handled(NamedTuple):
    body: Any  # as deserialized
    after_commit: list[Callable[[], None]]  # callbacks that handlers registered


@dataclass(frozen=True, slots=True)
class MessageHandling:
    """Makes the handling attempts of an endpoint."""

    endpoint: str
    handlers: Handlers
    serializers: Serializers
    outbound: MessageFactory
    pipeline: BehaviourChain
    invoke: Handler
    audit: AuditCopies
    replies: Callbacks
    recovery: RecoverabilityExecutor

    def make(self, message: IncomingMessage, transaction: UnitOfWork) -> Handled:
        """Handle a message. Raises MessageUnreadable, NoHandler or EmptyMessage before, AttemptFailed in handling."""
        started = time.time()
        context = MessageContext(message, self.outbound, transaction)
        body = self._read(context, transaction)
        tracing = self.pipeline.tracing
        logs.here.message = context.message
        try:
            if tracing:
                with tracing.processing(message):
                    self._handle(body, context, transaction, started)
            else:
                self._handle(body, context, transaction, started)
        except BaseException as error:  # SystemExit in a handler fails the message, and does not end this process
            raise AttemptFailed(error, self._remembered(context, error, transaction)) from error
        finally:
            logs.here.message = None
        return Handled(body, context.after_commit)

    def _handle(self, body: Any, context: MessageContext, transaction: UnitOfWork, started: float) -> None:
        forks = fork_safety.forks
        try:
            ran(self.invoke(body, context), self.invoke)  # type: ignore[func-returns-value]
        finally:
            fork_safety.end_child_since(forks)
            context.close()
        outgoing = [*context.outgoing, *self.audit.of(context.received, started)]
        transaction.handled(outgoing, context.after_commit)

    def acknowledge(self, message: IncomingMessage, transaction: UnitOfWork) -> None:
        """Audit a message that has no handler call."""
        transaction.dispatch(self.audit.of(message, time.time()))

    def body_of(self, message: IncomingMessage) -> Any:
        """The body of a message handled before."""
        message = self.pipeline.received(message) if self.pipeline.incoming else message
        return self.serializers.load(message.raw_body or b"", message.headers.get(h.CONTENT_TYPE))

    def _read(self, context: MessageContext, transaction: UnitOfWork) -> Any:
        message = context.message
        if message.unreadable:
            raise MessageUnreadable(message.unreadable)
        if self.pipeline.incoming:
            context.message = message = self._mutated(context, transaction)
        if _is_empty(message):
            raise EmptyMessage
        types = message.types
        if not types:
            raise MessageUnreadable(f"the headers name no message type ({h.ENCLOSED_MESSAGE_TYPES})")
        context.handlers = self.handlers.of(types)
        if not context.handlers and not self.replies.takes(message):
            raise NoHandler(f"{self.endpoint} has no handler for {', '.join(types)}")
        return self.serializers.load(message.raw_body or b"", message.headers.get(h.CONTENT_TYPE))

    def _mutated(self, context: MessageContext, transaction: UnitOfWork) -> IncomingMessage:
        try:
            return self.pipeline.received(context.message)
        except BaseException as error:
            raise AttemptFailed(error, self._remembered(context, error, transaction)) from error

    def _remembered(self, context: MessageContext, error: BaseException, transaction: UnitOfWork) -> Failure | None:
        """Record the failure before the rollback, after which another receiver can get the message."""
        if transaction.lost and not is_too_long(error):
            return None
        row = context.received.row_id
        if transaction.is_conflict(error) and self.recovery.failures.conflicted(row) < MOST_CONFLICTS:
            return None
        data = {**_handler_data(context), "Handler failure time": wire_now()}
        return self.recovery.remember(context.received, self.recovery.failure(context.received, error, data))


def _is_empty(message: IncomingMessage) -> bool:
    """Whether it is a control message or has no body, after mutators (wire sheet 2.5)."""
    return not message.raw_body or (h.CONTROL_MESSAGE in message.headers and h.is_control_message(message.headers))


def is_too_long(error: BaseException) -> bool:
    """Whether the session was lost by the message's fault: its next attempt would end the same way."""
    return isinstance(error, TransactionTooLong)


def call_handlers(body: Any, context: MessageContext) -> None:
    for handler in context.handlers:
        context.handling = handler, time.time()
        ran(handler(body, context), handler)


def call_traced(tracing: Tracing, body: Any, context: MessageContext) -> None:
    """Call each handler in its own span."""
    for handler in context.handlers:
        context.handling = handler, time.time()
        with tracing.handling(name_of(handler)):
            ran(handler(body, context), handler)


def _handler_data(context: MessageContext) -> dict[str, str]:
    if context.handling is None:
        return {}
    handler, started = context.handling
    return {
        "Message type": context.message.type,
        "Handler type": name_of(handler),
        "Handler start time": wire_time(datetime.fromtimestamp(started, UTC)),
        "Handler canceled": "False",
    }

"""Processes one received message, in any transaction mode."""

import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pgqueue_admin.transport import after_commit
from pgqueue_admin.transport.delayed.forwarding import PASSING, Forwarding
from pgqueue_admin.transport.errors import Unrecoverable
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.handling.attempt import AttemptFailed, EmptyMessage, Handled, MessageHandling
from pgqueue_admin.transport.handling.callbacks import Callbacks
from pgqueue_admin.transport.logs import about
from pgqueue_admin.transport.ports import Observer
from pgqueue_admin.transport.recoverability.executor import RecoverabilityExecutor
from pgqueue_admin.transport.recoverability.failure_cache import FailureCache
from pgqueue_admin.transport.unit_of_work import AfterCommit, UnitOfWork
from pgqueue_admin.transport.wire.message import IncomingMessage

log = logging.getLogger("pgqueue_admin.transport")


@dataclass(frozen=True, slots=True)
class MessageProcessor:
    endpoint: str
    attempts: MessageHandling
    recovery: RecoverabilityExecutor
    forwarding: Forwarding
    failures: FailureCache
    observer: Observer
    replies: Callbacks

    def process(self, message: IncomingMessage, transaction: UnitOfWork) -> AfterCommit:
        """Handle, drop or give up. Return a callback for the observer after the commit. Raises AttemptFailed."""
        if message.expired and not message.headers_lost:
            return partial(self.observer.expired, message.type)
        if message.forward_to:
            if self.forwarding.leaves(message):
                return self._forward(message, transaction)
            message = message.at_its_destination()
        return self._process_here(message, transaction)

    def _process_here(self, message: IncomingMessage, transaction: UnitOfWork) -> AfterCommit:
        self.observer.received(message)
        if failed := self.failures.final(message.row_id):
            return self.recovery.recover(message, failed, transaction)
        if transaction.was_handled(message):
            return partial(self._was_handled, message)
        started = time.monotonic()
        try:
            handled = self.attempts.make(message, transaction)
        except EmptyMessage:
            self.attempts.acknowledge(message, transaction)
            return partial(self._acknowledged, message)
        except Unrecoverable as error:
            return self.recovery.unreadable(message, error, transaction)
        return partial(self._succeeded, message, handled, time.monotonic() - started)

    def _forward(self, message: IncomingMessage, transaction: UnitOfWork) -> AfterCommit:
        """Forward once, like the original: a refused message is exhausted when it is next received.

        The savepoint keeps the row locked until the failure is recorded: a failed statement outside of one would
        release it at once, and another slot would try as well.
        """
        if failed := self.failures.of(message.row_id):
            return self.recovery.give_up(message, failed, transaction)
        try:
            with transaction.to_give_up() as connection, connection.transaction():
                transaction.dispatch_with_receive([self.forwarding.onward(message)])
        except Exception as error:
            failure = None if transaction.gives_back(error) else self.forwarding.failure(message, error, self.endpoint)
            raise AttemptFailed(error, failure and self.failures.remember(message.row_id, failure)) from error
        return lambda: None

    def refused(self, message: IncomingMessage, error: Exception) -> Failure | None:
        """Record a refused commit as a failure of the message or its destination. None: of neither."""
        if not self.forwarding.leaves(message):
            return self.recovery.refused(message, error)
        if isinstance(error, PASSING):
            return None
        failed = self.failures.of(message.row_id)  # then the error queue refused it
        return failed or self.failures.remember(message.row_id, self.forwarding.failure(message, error, self.endpoint))

    def _was_handled(self, message: IncomingMessage) -> None:
        log.info("Message %s was handled before: its duplicate is dropped.", message.message_id, extra=about(message))
        self.failures.forget(message.row_id)
        self.observer.duplicate()
        if self.replies.takes(message):  # the mark may have failed before the request got the reply
            self.replies.answer(message, self.attempts.body_of(message), handled=True)

    def _acknowledged(self, message: IncomingMessage) -> None:
        if self.replies.takes(message):
            self._answered(message, None)

    def _answered(self, message: IncomingMessage, body: Any) -> None:
        self.replies.answer(message, body, bool(self.attempts.handlers.of(message.types)))

    def _succeeded(self, message: IncomingMessage, handled: Handled, seconds: float) -> None:
        self.failures.forget(message.row_id)
        self.observer.handled(seconds)
        if sent := message.sent:
            self.observer.critical_time((datetime.now(UTC) - sent).total_seconds())
        if self.replies.takes(message):
            self._answered(message, handled.body)
        after_commit.call(handled.after_commit, message)

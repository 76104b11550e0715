"""Carries out the decision on a failed message, in its receive transaction: delay, dead-letter or discard."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from pgqueue_admin.transport.delayed.forwarding import PASSING, Forwarding
from pgqueue_admin.transport.failure import Failure, failure_of
from pgqueue_admin.transport.logs import about
from pgqueue_admin.transport.ports import Observer
from pgqueue_admin.transport.recoverability import policy
from pgqueue_admin.transport.recoverability.dead_lettering import DeadLettering, queue_named_by_the_policy
from pgqueue_admin.transport.recoverability.failure_cache import FailureCache
from pgqueue_admin.transport.recoverability.policy import FailedAttempt, Policy, decide, standard
from pgqueue_admin.transport.recoverability_actions import After, Discard, Exhaust
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.unit_of_work import AfterCommit, UnitOfWork
from pgqueue_admin.transport.wire.message import IncomingMessage

log = logging.getLogger("pgqueue_admin.transport")


class ErrorQueueRefused(Exception):
    """Neither archive nor error queue could take an exhausted message. ``pause``: seconds until the next attempt."""

    def __init__(self, said: str, pause: float):
        self.pause = pause
        super().__init__(said)


@dataclass(frozen=True, slots=True)
class RecoverabilityExecutor:
    endpoint: str
    unrecoverable: tuple[type[BaseException], ...]
    policy: Policy
    forwarding: Forwarding
    exhaustion: DeadLettering
    failures: FailureCache
    observer: Observer
    settings: Callable[[], EndpointSettings]
    breaker: CircuitBreaker

    def failure(self, message: IncomingMessage, error: BaseException, data: dict[str, str] | None = None) -> Failure:
        recoverable = not isinstance(error, self.unrecoverable)
        return failure_of(error, self.endpoint, message.queue, recoverable=recoverable, data=data or {})

    def remember(self, message: IncomingMessage, failure: Failure) -> Failure:
        """Count the failure, and decide what to do when the message is received again."""
        decided = self._decided(message, self.failures.remember(message.row_id, failure))
        self.failures.decided(message.row_id, decided)
        return decided

    def refused(self, message: IncomingMessage, error: Exception) -> Failure:
        """Record a refused commit. If it sent the message to the policy's queue, from now on the settings decide."""
        before = self.failures.final(message.row_id)
        named = queue_named_by_the_policy(before) if before else ""
        if before is None or not named or isinstance(error, PASSING):
            return self.remember(message, self.failure(message, error))
        said = "The commit that put message %s into the policy's error queue %r was refused, so the settings decide: %s"
        log.error(said, message.message_id, named, error, extra=about(message))
        return self._leave_to_settings(message, before)

    def _leave_to_settings(self, message: IncomingMessage, failure: Failure) -> Failure:
        """Make the settings decide where the message goes when it is received again."""
        left = replace(failure, action=Exhaust())
        self.failures.decided(message.row_id, left)
        return left

    def _decided(self, message: IncomingMessage, failure: Failure) -> Failure:
        attempted = FailedAttempt(message, failure, self.settings())
        try:
            action = decide(self.policy, attempted)
        except Exception:
            said = "The recoverability policy failed for message %s: the settings decide"
            log.exception(said, message.message_id, extra=about(message))
            action = decide(standard, attempted)
        return replace(failure, action=action)

    def recover(self, message: IncomingMessage, failure: Failure, transaction: UnitOfWork) -> AfterCommit:
        """Carry out the decision. Raises ErrorQueueRefused."""
        if isinstance(failure.action, After) and (told := self._retry_later(message, failure, transaction)):
            return told
        return self.end(message, failure, transaction)

    def unreadable(self, message: IncomingMessage, error: BaseException, transaction: UnitOfWork) -> AfterCommit:
        """Dead-letter an unreadable message at once. Raises ErrorQueueRefused."""
        self.observer.failed(error)
        return self.recover(message, self._decided(message, self.failure(message, error)), transaction)

    def end(self, message: IncomingMessage, failure: Failure, transaction: UnitOfWork) -> AfterCommit:
        """Discard or dead-letter a message. Raises ErrorQueueRefused."""
        if isinstance(failure.action, Discard):
            return self._discard(message, failure.action)
        return self.give_up(message, failure, transaction)

    def _discard(self, message: IncomingMessage, action: Discard) -> AfterCommit:
        said = "Message %s is discarded by the recoverability policy: %s"
        log.warning(said, message.message_id, action.reason, extra=about(message))
        return lambda: self._put_away(message)

    def _retry_later(self, message: IncomingMessage, failure: Failure, transaction: UnitOfWork) -> AfterCommit | None:
        """Store a delayed retry; None if the delayed table refuses. Raises ErrorQueueRefused if that doomed the
        receive."""
        assert isinstance(failure.action, After)
        try:
            later = policy.later(message, failure.action.delay, self.forwarding.own_address(message))
            with transaction.to_give_up() as connection, connection.transaction():
                transaction.dispatch_with_receive([later])
        except Exception as error:
            if transaction.gives_back(error):
                raise
            log.error("Message %s gets no delayed retry: %s", message.message_id, error, extra=about(message))
            if transaction.is_doomed:
                self._leave_to_settings(message, failure)
                raise ErrorQueueRefused(
                    f"message {message.message_id} is put away when it is next received", 0
                ) from error
            return None
        said = "Message %s is tried again in %s: %s"
        log.warning(said, message.message_id, later.delay, failure.message, extra=about(message))
        return lambda: self._put_aside(message)

    def give_up(self, message: IncomingMessage, failure: Failure, transaction: UnitOfWork) -> AfterCommit:
        """Dead-letter a message. Raises ErrorQueueRefused."""
        try:
            self.exhaustion.take(message, failure, self.settings(), transaction)
        except Exception as error:
            if transaction.is_doomed and queue_named_by_the_policy(failure):
                self._leave_to_settings(message, failure)
            said = f"message {message.message_id} could not be put away: {error}"
            raise ErrorQueueRefused(said, self.breaker.failed(error)) from error
        return lambda: self._put_away(message)

    def _put_aside(self, message: IncomingMessage) -> None:
        self.failures.forget(message.row_id)
        self.observer.retried()

    def _put_away(self, message: IncomingMessage) -> None:
        self.failures.forget(message.row_id)
        self.breaker.succeeded()

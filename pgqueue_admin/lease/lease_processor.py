"""Processes one message: calls its handler outside any transaction, then ends the message once."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.lease_store import Ending
from pgqueue_admin.lease.endings import ending
from pgqueue_admin.lease.errors import LockLost, MessageUnreadable, Rejected
from pgqueue_admin.lease.handlers import HandlerContext
from pgqueue_admin.lease.message import LeasedMessage, held
from pgqueue_admin.lease.queue import LeaseQueue
from pgqueue_admin.transport.failure import message_of
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.sync_call import ran

log = logging.getLogger("pgqueue_admin.lease")

REFUSED_TIMES = 5  # refusals of an ending by a reachable database; then the lock expires


class LeaseProcessor:
    def __init__(self, queue: LeaseQueue, context: HandlerContext, breaker: CircuitBreaker, given_up: threading.Event):
        """``given_up``: stop waiting for a database that does not answer."""
        self._queue, self._context, self._breaker, self._given_up = queue, context, breaker, given_up
        self._handlers, self._settings, self._observer = context.handlers, context.settings, context.observer

    def handle(self, slot: int, lease: LeasedMessage) -> None:
        message = held(lease)
        self._observer.received(message)
        self._observer.in_flight(slot, message)
        try:
            self._handle(slot, lease)
        finally:
            self._observer.in_flight(slot, None)

    def _handle(self, slot: int, lease: LeasedMessage) -> None:
        kind: str | None = None
        started = time.monotonic()
        try:
            kind = self._kind(lease.message)
            self._observer.in_flight(slot, held(lease, kind))
            handler = self._handlers.of(kind)
            handler.check(lease.message)
            self._context.before_each()
            details = handler.function(lease.message, lease)
            ran(details, handler.function)
        except (MessageUnreadable, Rejected) as error:
            self._observer.failed(error)
            self._end(lease, ending(lease, "rejected", message_of(error), kind))
        except BaseException as error:
            self._failed(lease, kind, error)
        else:
            seconds = time.monotonic() - started
            self._succeeded(lease, ending(lease, "success", details, kind), seconds)

    def _succeeded(self, lease: LeasedMessage, end: Ending, seconds: float) -> None:
        if not self._end(lease, end):
            return self._observer.failed(LockLost())
        self._observer.handled(seconds)
        self._observer.critical_time((datetime.now(UTC) - lease.created_at).total_seconds())

    def _kind(self, message: Any) -> str | None:
        """``kind_of`` may fail on what other programs wrote."""
        kind = self._handlers.kind_of(message)
        return kind if isinstance(kind, str) else None

    def _failed(self, lease: LeasedMessage, kind: str | None, error: BaseException) -> None:
        self._observer.failed(error)
        retries = self._settings().retry_after
        if lease.attempts > len(retries):
            log.error("%r has failed", lease, exc_info=error)
            self._end(lease, ending(lease, "failed", kind=kind, error=error))
            return
        seconds = retries[lease.attempts - 1]
        log.warning("%r failed and comes back in %g s", lease, seconds, exc_info=error)
        if self._insist(lease, lambda: self._queue.release(lease, seconds)):
            self._observer.retried()

    def _end(self, lease: LeasedMessage, end: Ending) -> bool:
        """Return whether the message ended with this result."""
        archives, results = self._settings().archive_success, [end.result]

        def finish() -> bool:
            ended = self._queue.finish_many([end], archive_success=archives)
            results[:] = [each.result for each in ended] or results
            return bool(ended)

        is_ended = self._insist(lease, finish)
        if results != [end.result]:
            log.warning("%r ended as %s: its lock was over before its handler was", lease, results[0])
        return is_ended and results == [end.result]

    def _insist(self, lease: LeasedMessage, end: Callable[[], bool]) -> bool:
        """Repeat until the database answers; return whether the act succeeded. A lost session may hide a success, so
        after the first try False counts as True."""
        refused, asked = 0, 0
        while not self._given_up.is_set():
            try:
                asked += 1
                is_ended = end()
            except Exception as error:
                refused += not isinstance(error, DatabaseDown)
                if refused >= REFUSED_TIMES:
                    log.error("%r cannot be ended, so its lock expires: %s", lease, error)
                    return False
                self._given_up.wait(self._breaker.failed(error))
            else:
                self._breaker.succeeded()
                if not is_ended and asked == 1:
                    log.warning("%r was not ours any more when its handler was done", lease)
                return is_ended or asked > 1
        return False

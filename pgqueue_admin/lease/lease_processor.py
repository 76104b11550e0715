"""One message: its handler is called with no transaction open, and then the message ends, once."""

import logging
import threading
from collections.abc import Callable
from typing import Any

from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.lease_store import Ending
from pgqueue_admin.lease.endings import ending
from pgqueue_admin.lease.errors import MessageUnreadable, Rejected
from pgqueue_admin.lease.handlers import LeaseHandlers
from pgqueue_admin.lease.message import LeasedMessage
from pgqueue_admin.lease.queue import LeaseQueue
from pgqueue_admin.lease.settings import LeaseSettings
from pgqueue_admin.transport.failure import message_of
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.sync_call import ran

log = logging.getLogger("pgqueue_admin.lease")

REFUSED_TIMES = 5  # that a database which answers may refuse an ending; then the lock expires


class LeaseProcessor:
    def __init__(
        self,
        queue: LeaseQueue,
        handlers: LeaseHandlers,
        settings: Callable[[], LeaseSettings],
        breaker: CircuitBreaker,
        given_up: threading.Event,
    ):
        """``given_up``: no longer waits for a database that does not answer."""
        self._queue, self._handlers, self._settings = queue, handlers, settings
        self._breaker, self._given_up = breaker, given_up

    def handle(self, lease: LeasedMessage) -> None:
        kind: str | None = None
        try:
            kind = self._kind(lease.message)
            handler = self._handlers.of(kind)
            handler.check(lease.message)
            details = handler.function(lease.message, lease)
            ran(details, handler.function)
        except (MessageUnreadable, Rejected) as error:
            self._end(lease, ending(lease, "rejected", message_of(error), kind))
        except BaseException as error:
            self._failed(lease, kind, error)
        else:
            self._end(lease, ending(lease, "success", details, kind))

    def _kind(self, message: Any) -> str | None:
        """Whoever says the kind may stumble over what others wrote."""
        kind = self._handlers.kind_of(message)
        return kind if isinstance(kind, str) else None

    def _failed(self, lease: LeasedMessage, kind: str | None, error: BaseException) -> None:
        retries = self._settings().retry_after
        if lease.attempts > len(retries):
            log.error("%r has failed", lease, exc_info=error)
            return self._end(lease, ending(lease, "failed", kind=kind, error=error))
        seconds = retries[lease.attempts - 1]
        log.warning("%r failed and comes back in %g s", lease, seconds, exc_info=error)
        self._insist(lease, lambda: self._queue.release(lease, seconds))

    def _end(self, lease: LeasedMessage, end: Ending) -> None:
        archives = self._settings().archive_success

        def finish() -> bool:
            ended = self._queue.finish_many([end], archive_success=archives)
            if ended and ended[0].result != end.result:
                log.warning("%r ended as %s: its lock was over before its handler was", lease, ended[0].result)
            return bool(ended)

        self._insist(lease, finish)

    def _insist(self, lease: LeasedMessage, end: Callable[[], bool]) -> None:
        """Until the database has answered. What was done is not done again because a session was lost meanwhile."""
        refused, asked = 0, 0
        while not self._given_up.is_set():
            try:
                asked += 1
                is_ended = end()
            except Exception as error:
                refused += not isinstance(error, DatabaseDown)
                if refused >= REFUSED_TIMES:
                    log.error("%r cannot be ended, so its lock expires: %s", lease, error)
                    return
                self._given_up.wait(self._breaker.failed(error))
            else:
                self._breaker.succeeded()
                if not is_ended and asked == 1:
                    log.warning("%r was not ours any more when its handler was done", lease)
                return

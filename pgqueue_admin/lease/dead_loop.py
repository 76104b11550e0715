"""Passes dead messages to their handlers, one at a time, at least once each."""

import logging
import time

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.lease_store import DeadLease, LeaseStore
from pgqueue_admin.lease.errors import MessageUnreadable
from pgqueue_admin.lease.handlers import DeadHandler, HandlerContext
from pgqueue_admin.lease.message import DeadMessage
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.sync_call import ran

log = logging.getLogger("pgqueue_admin.lease")

CHANNEL = "dead_message"


class DeadLoop:
    """Implements listener.ListenerWork. The handler runs without a transaction. Its message is reserved for
    ``lock_seconds``; a slower handler may receive it twice."""

    def __init__(self, store: LeaseStore, context: HandlerContext, breaker: CircuitBreaker):
        self._store, self._context, self._breaker = store, context, breaker
        self._handlers, self._settings = context.handlers, context.settings
        self.paused = False
        self.begun()

    def begun(self) -> None:
        self._look_at, self._has_asked = 0.0, False

    def run_once(self, session: Connection, has_heard: bool) -> float:
        if has_heard:
            self._look_at = 0.0
        if self.paused or time.monotonic() < self._look_at:
            return self._rest
        if not self._has_asked:
            self._store.ask_for_dead(session)
            self._has_asked = True
        due = self._store.dead_due_in(session)
        self._breaker.succeeded()
        if due is not None and due <= 0:
            for row in self._store.claim_dead(session, 1, self._settings().lock_seconds):
                self._give(session, row)
            return 0.0
        self._look_at = time.monotonic() + (self._settings().look_every if due is None else due)
        return self._rest

    @property
    def wants_to_hear(self) -> bool:
        return not self.paused

    @property
    def _rest(self) -> float:
        longest = self._settings().look_every
        return longest if self.paused else min(longest, self._look_at - time.monotonic())

    def _give(self, session: Connection, row: DeadLease) -> None:
        dead, retries = DeadMessage(row), self._settings().retry_after
        handler = None if row.message is None else self._handlers.of_dead(self._kind(dead))
        try:
            if handler and row.given <= len(retries) + 1:  # otherwise its process died with it each time
                self._handle(handler, dead)
        except BaseException as error:
            if row.given <= len(retries):
                seconds = retries[row.given - 1]
                log.warning("%r was not handled, and comes back in %g s", dead, seconds, exc_info=error)
                return self._store.delay_dead(session, row.archive_id, seconds)
            log.error("%r was not handled, and comes back no more", dead, exc_info=error)
        self._store.end_dead(session, row.archive_id)

    def _handle(self, handler: DeadHandler, dead: DeadMessage) -> None:
        self._context.before_each()
        ran(handler(dead), handler)

    def _kind(self, dead: DeadMessage) -> str | None:
        """None if ``kind_of`` fails: other programs may have written anything."""
        try:
            kind = self._handlers.kind_of(dead.message)
        except Exception as error:
            if not isinstance(error, MessageUnreadable):
                log.warning("The kind of %r is unknown", dead, exc_info=error)
            return None
        return kind if isinstance(kind, str) else None

"""The lease queue's process: ends expired locks within a second, sends due schedules, applies retry rules.

Queries once a minute while the queue is empty and nothing is due.
"""

import logging
import time

import django.db
from django.conf import settings
from django.db import connections
from django.db.models.functions import Now

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.lease import claim_loop, dead_loop, expiry
from pgqueue_admin.lease.queue import LeaseQueue, Leases
from pgqueue_admin.models.db_backend.base import only_short_ones_here
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport.sessions.reconnecting_session import ReconnectingSession
from pgqueue_admin.workers.processes.advisory_lock import SingletonLock
from pgqueue_admin.workers.processes.lease_clocks import RuleClock, ScheduleClock
from pgqueue_admin.workers.processes.wakeup_pipe import ShutdownSignal
from pgqueue_admin.workers.reporting import process_identity, process_stats
from pgqueue_admin.workers.reporting.liveness_file import LivenessFile
from pgqueue_admin.workers.supervisor.process_recorder import record

log = logging.getLogger(__name__)
ROLE = "expirer"
BEAT = 2.0  # most seconds between two heartbeats
WHILE_LOCKED = 1.0  # seconds: a new lock may be shorter than all seen before
WHILE_EMPTY = 60.0
AT_MOST = 5.0  # seconds per turn


def run() -> None:
    """Run until SIGTERM or SIGINT."""
    only_short_ones_here()
    ending, process, pulse = ShutdownSignal(), ExpirerProcess(), LivenessFile()
    while not ending.asked:
        pulse.beat()
        process.run_once()
        ending.wait(process.rest, *process.wakers)
    process.close()


class ExpirerProcess:
    """One per console database, only to save statements: several at once would do no harm."""

    def __init__(self) -> None:
        self._me, self._sole, self._is_sole = process_identity.mine(), SingletonLock(ROLE), False
        answer_seconds = settings.PGQUEUE["ANSWER_SECONDS"]
        self._queue = LeaseQueue(queue_database().dsn, name=expiry.BY, answer_seconds=answer_seconds)
        self._session = ReconnectingSession(self._queue.opening.short)
        self._look_at, self._ended, self._trouble, self._is_installed = 0.0, 0, "", False
        self._clock, self._rules = ScheduleClock(), RuleClock()
        self.listening: list[Connection] = []  # only a notification can announce a lock on an empty queue

    @property
    def rest(self) -> float:
        return max(0.0, min(BEAT, self._look_at - time.monotonic(), self._clock.rest, self._rules.rest))

    @property
    def wakers(self) -> list[Connection]:
        """Sessions that may end a rest. None while the next turn is near: a busy queue would end each rest."""
        return self.listening if self._look_at - time.monotonic() > WHILE_LOCKED else []

    def run_once(self) -> None:
        self._report()
        if not self._alone():
            self._put_off()
            return
        try:
            self._look(self._session.fresh())
            self._clock.run_once()
            self._rules.run_once()
            self._note(self._rules.trouble)
        except DatabaseError as error:
            self.listening, self._is_installed = [], False
            self._put_off()
            self._note(str(error))

    def close(self) -> None:
        self._session.close()
        self._sole.resign()

    def _put_off(self) -> None:
        self._look_at = time.monotonic() + WHILE_LOCKED
        self._clock.put_off(WHILE_LOCKED)
        self._rules.put_off(WHILE_LOCKED)

    def _alone(self) -> bool:
        """Keeps its last answer while the console's database is down: locks expire all the same."""
        try:
            self._is_sole = self._sole.mine()
        except DatabaseError:
            self._sole.let_go()
        return self._is_sole

    def _look(self, session: Connection) -> None:
        if self.listening != [session]:
            session.listen(claim_loop.CHANNEL)
            session.listen(dead_loop.CHANNEL)
            self.listening, self._look_at = [session], 0.0
            self._rules.wake()
        heard = {each.channel for each in session.notifications(0)}
        if dead_loop.CHANNEL in heard:
            self._rules.wake()
        if claim_loop.CHANNEL in heard:
            self._look_at = min(self._look_at, time.monotonic() + WHILE_LOCKED)
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + self._kept(self._queue.on(session))

    def _kept(self, leases: Leases) -> float:
        """Expire locks; return the seconds until the next look."""
        self._is_installed = self._is_installed or leases.is_installed()
        if not self._is_installed:
            return WHILE_EMPTY
        ahead = leases.outlook()
        if ahead.can_expire:
            self._ended += sum(expiry.expire(leases, time.monotonic() + AT_MOST))
        if ahead.is_empty:
            return WHILE_EMPTY
        return WHILE_LOCKED if ahead.expire_in is None else max(0.0, min(WHILE_LOCKED, ahead.expire_in))

    def _report(self) -> None:
        said = {
            "handled": self._ended + self._clock.sent + self._rules.retried,
            "last_error": self._trouble,
            **process_stats.facts(),
        }
        try:
            record(self._me, {"role": ROLE, "state": "running", "heartbeat_at": Now(), **said})
        except django.db.Error:
            connections["default"].close()

    def _note(self, trouble: str) -> None:
        """Log when a problem begins and when it ends."""
        if trouble and not self._trouble:
            log.warning("Expired locks are not ended, schedules not sent, or retry rules not followed: %s", trouble)
        elif self._trouble and not trouble:
            log.warning("Expired locks are ended, schedules sent and retry rules followed again.")
        self._trouble = trouble

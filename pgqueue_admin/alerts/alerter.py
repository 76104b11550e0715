"""The alerter: listens for deaths, reads on from its cursor, evaluates every few seconds, and mails."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import Any

import django.db
from django.conf import settings
from django.core.mail import DNS_NAME
from django.db import connections, transaction
from django.db.models.functions import Now

from pgqueue_admin.alerts import dead_message_cursor
from pgqueue_admin.alerts.database_exposure import Exposure
from pgqueue_admin.alerts.evaluation import Evaluation
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.mail import delivery, policy
from pgqueue_admin.alerts.outboxes import ElsewhereWatch, InDoubtWatch, OutboxWatch
from pgqueue_admin.alerts.periodic_looks import CrossingWatch, LeaseLockWatch, PeriodicLook, ScheduleWatch
from pgqueue_admin.alerts.snapshot import look
from pgqueue_admin.alerts.table_faults import TableFaultWatch
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import Process, database_clock, notify, outage
from pgqueue_admin.models.db_backend.base import only_short_ones_here
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.workers.processes.wakeup_pipe import WakeupPipe
from pgqueue_admin.workers.reporting import process_identity, process_stats
from pgqueue_admin.workers.reporting.liveness_file import LivenessFile
from pgqueue_admin.workers.supervisor import process_recorder

log = logging.getLogger("pgqueue.alerts")
CHANNEL = "dead_message"
EVERY = 2.0
DEAF_SECONDS = 10.0  # between two tries to listen
SETTLE = 0.5  # seconds: deaths come in groups, and the first mail should count them


class Alerter:
    """NOTIFY only wakes it: after each wait, also after a lost connection, it reads all deaths past the cursor."""

    def __init__(self, every: float = EVERY) -> None:
        self.every = every
        self.began = database_clock.now()
        self._answering_since: datetime | None = self.began  # the console's database; None while it does not answer
        self.waker = WakeupPipe()
        self._archive = dead_message_cursor.DeadMessageCursor()
        self._watches: dict[str, PeriodicLook[Any]] = {
            "exposed": Exposure(),
            "outboxes": OutboxWatch(),
            "in_doubt": InDoubtWatch(),
            "outboxes_elsewhere": ElsewhereWatch(),
            "crossings": CrossingWatch(),
            "faulty_tables": TableFaultWatch(),
            "lease_locks": LeaseLockWatch(),
            "unsent_schedules": ScheduleWatch(),
        }
        self._stopping = False  # not an Event: a signal handler must not take a lock that its thread may hold
        self._ears: Connection | None = None
        self._ears_at = 0.0  # no connection is tried before
        self._said: set[str] = set()
        self._outage = outage.DatabaseOutage()

    def stop(self, *signal: object) -> None:
        self._stopping = True
        self.waker.set()

    def run(self) -> None:
        str(DNS_NAME)  # our name in EHLO: looked up once, and never while a mail waits
        only_short_ones_here()
        pulse = LivenessFile()
        while not self._stopping:
            pulse.beat()
            self._open_ears()
            self.run_once(pulse.beat)
            self._wait()
        self._close_ears()

    def run_once(self, alive: Callable[[], None] = lambda: None) -> None:
        """Run one pass and send its mails. While the console's database is down, it skips the pass and goes on."""
        try:
            with connections["default"].cursor():
                self._answering_since = self._answering_since or database_clock.now()
                changed = self.look_round(alive)
            self._beat()
            if delivery.deliver(database_clock.now(), alive) or changed:
                notify.announce(notify.ALERT)
            self._outage.is_over()
        except django.db.Error as error:
            self._answering_since = None
            if self._outage.is_news(error):
                log.warning("The console's database %s; nothing is judged meanwhile. %s", outage.describe(error), error)
            connections["default"].close()

    def look_round(self, alive: Callable[[], None] = lambda: None) -> bool:
        """Commit deaths, warnings, mails and cursor together, or not at all."""
        watched = {name: each.newest() for name, each in self._watches.items()}
        with transaction.atomic(), dead_message_cursor.cursor() as cursor:
            reading = self._archive.read(queue_database(), cursor)
            seen = look(database_clock.now(), self.began, reading, self._answering_since, **watched)
            changes = Evaluation(seen, alive).run()
            mails = policy.write(seen, changes)
        self._name(changes.failed)
        return bool(changes or mails)

    def _name(self, failed: dict[str, Exception]) -> None:
        """Log a kind that cannot be evaluated once, until it can be again."""
        for kind, error in failed.items():
            sentence = f"The warning {kind} cannot be judged; what it has open stays as it stands."
            self._say_once(kind, f"{sentence} {type(error).__name__}: {error}", error)
        self._said -= {kind for kind in BY_NAME if kind not in failed}

    def _wait(self) -> None:
        ears = [self._ears] if self._ears else []
        self.waker.wait(self.every, *ears)
        if self._hears() and not self._stopping:
            self.waker.wait(SETTLE)
            self._hears()

    def _hears(self) -> bool:
        """Whether a death was announced. A broken session is closed, and opened again before the next pass."""
        if self._ears is None:
            return False
        try:
            return bool(list(self._ears.notifications(0)))
        except DatabaseError:
            self._close_ears()
            return False

    def _open_ears(self) -> None:
        """Open the listening session. It only speeds things up: without it passes go on, and none waits for it."""
        if (self._ears is not None and not self._ears.closed) or time.monotonic() < self._ears_at:
            return
        try:
            of = queue_database()
            self._ears = of.dialect.connect(
                of.dsn,
                application_name="pgqueue-admin alerter",
                fail_fast=True,
                answer_seconds=settings.PGQUEUE["ANSWER_SECONDS"],
            )
            self._ears.listen(CHANNEL)
            self._said.discard("ears")
        except DatabaseError as error:
            self._close_ears()
            self._ears_at = time.monotonic() + DEAF_SECONDS
            self._say_once("ears", f"Not listening for dead messages, looking every {self.every} s. {error}")

    def _close_ears(self) -> None:
        if self._ears is not None:
            with suppress(DatabaseError):
                self._ears.close()
        self._ears = None

    def _beat(self) -> None:
        state = Process.State.DRAINING if self._stopping else Process.State.RUNNING
        process_recorder.record(
            self._me, {"role": "alerter", "state": state, "heartbeat_at": Now(), **process_stats.facts()}
        )

    @cached_property
    def _me(self) -> process_identity.ProcessIdentity:
        return process_identity.mine()

    def _say_once(self, what: str, sentence: str, error: Exception | None = None) -> None:
        if what not in self._said:
            log.warning(sentence, exc_info=error)
        self._said.add(what)

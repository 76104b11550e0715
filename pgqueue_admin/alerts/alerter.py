"""The alerter: hears of deaths, reads on from its cursor, judges every few seconds, and mails."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import cached_property

import django.db
from django.conf import settings
from django.core.mail import DNS_NAME
from django.db import connections, transaction
from django.db.models.functions import Now

from pgqueue_admin.alerts import archive_reader, post, telling
from pgqueue_admin.alerts.evaluate import Evaluation
from pgqueue_admin.alerts.exposure import Exposure
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.look import look
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.records import away, clock, notify
from pgqueue_admin.records.models import Process
from pgqueue_admin.records.sessions.base import only_short_ones_here
from pgqueue_admin.records.source import source
from pgqueue_admin.workers import identity, ledger, vitals
from pgqueue_admin.workers.pulse import Pulse
from pgqueue_admin.workers.waker import Waker

log = logging.getLogger("pgqueue.alerts")
CHANNEL = "dead_message"
EVERY = 2.0
DEAF_SECONDS = 10.0  # between two tries to listen
SETTLE = 0.5  # one death seldom comes alone: the first mail should say how many


class Alerter:
    """NOTIFY only wakes it: after each wait, also after a lost connection, it reads what the cursor has not."""

    def __init__(self, every: float = EVERY) -> None:
        self.every = every
        self.began = clock.now()
        self._answering_since: datetime | None = self.began  # the console's database; None while it does not
        self.waker = Waker()
        self._archive = archive_reader.ArchiveReader()
        self._exposure = Exposure()
        self._stopping = False  # no event: a signal handler must not take a lock that its own thread may hold
        self._ears: Connection | None = None
        self._ears_at = 0.0  # until then none are tried
        self._said: set[str] = set()
        self._outage = away.Outage()

    def stop(self, *signal: object) -> None:
        self._stopping = True
        self.waker.set()

    def run(self) -> None:
        str(DNS_NAME)  # what the mail server is greeted with: looked up once, and never while a mail waits
        only_short_ones_here()
        pulse = Pulse()
        while not self._stopping:
            pulse.beat()
            self._open_ears()
            self.turn(pulse.beat)
            self._wait()
        self._close_ears()

    def turn(self, alive: Callable[[], None] = lambda: None) -> None:
        """One pass and what it has to send. A console database that is away costs the turn and nothing else."""
        try:
            with connections["default"].cursor():
                self._answering_since = self._answering_since or clock.now()
                changed = self.look_round(alive)
            self._beat()
            if post.deliver(clock.now(), alive) or changed:
                notify.announce(notify.ALERT)
            self._outage.is_over()
        except django.db.Error as error:
            self._answering_since = None
            if self._outage.is_news(error):
                log.warning("The console's database %s; nothing is judged meanwhile. %s", away.does(error), error)
            connections["default"].close()

    def look_round(self, alive: Callable[[], None] = lambda: None) -> bool:
        """Deaths, warnings, mails to send and the cursor: committed together, or not at all."""
        exposed = self._exposure.found()
        with transaction.atomic(), archive_reader.cursor() as cursor:
            reading = self._archive.read(source(), cursor)
            seen = look(clock.now(), self.began, reading, self._answering_since, exposed)
            changes = Evaluation(seen, alive).run()
            mails = telling.write(seen, changes)
        self._name(changes.failed)
        return bool(changes or mails)

    def _name(self, failed: dict[str, Exception]) -> None:
        """A kind that cannot be judged is said once, until it can be again."""
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
        """Whether a death was announced. A broken session is opened anew before the next turn."""
        if self._ears is None:
            return False
        try:
            return bool(list(self._ears.notifications(0)))
        except DatabaseError:
            self._close_ears()
            return False

    def _open_ears(self) -> None:
        """They only make it quicker: where no session is to be had, turns go on, and wait for none each time."""
        if (self._ears is not None and not self._ears.closed) or time.monotonic() < self._ears_at:
            return
        try:
            of = source()
            self._ears = of.dialect.connect(
                of.dsn,
                application_name="pgqueue-admin alerter",
                impatient=True,
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
        ledger.record(self._me, {"role": "alerter", "state": state, "heartbeat_at": Now(), **vitals.facts()})

    @cached_property
    def _me(self) -> identity.Identity:
        return identity.mine()

    def _say_once(self, what: str, sentence: str, error: Exception | None = None) -> None:
        if what not in self._said:
            log.warning(sentence, exc_info=error)
        self._said.add(what)

"""A thread with a session on the console's database: listens, sends heartbeats, reconnects."""

import logging
import threading
from collections.abc import Iterator
from typing import Protocol

import django.db
from django.db import connections

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import notify, outage
from pgqueue_admin.models.db_backend.base import only_short_ones_here
from pgqueue_admin.workers.processes.wakeup_pipe import WakeupPipe

log = logging.getLogger(__name__)
LONGEST_WAIT = 5.0


class ConsoleWork(Protocol):
    def connected(self, connection: Connection) -> None:
        """A new session: read everything, because a notification may have been missed."""

    def heard(self, names: list[str]) -> None:
        """A change of these endpoints was announced."""

    def beat(self) -> None:
        """Called after each wait, with or without a notification."""


class ConsoleSession(threading.Thread):
    """Does all work on ``default`` in one thread, so that an outage of that database stops no process."""

    def __init__(self, name: str, work: ConsoleWork, seconds: float = 1.0):
        super().__init__(name=name, daemon=True)
        self.work, self.seconds = work, seconds
        self.waker = WakeupPipe()
        self.failures = 0
        self._outage = outage.DatabaseOutage()
        self._stopped = threading.Event()

    def run(self) -> None:
        only_short_ones_here()
        while not self._stopped.is_set():
            try:
                self._session()
            except django.db.DataError:
                self._stumbled()  # our data was refused: the database is up
            except (DatabaseError, django.db.Error) as error:
                self._away(error)
            except Exception:  # our own bug: a process that no longer reports or listens would be worse
                self._stumbled()
        connections["default"].close()

    def _stumbled(self) -> None:
        log.exception("%s stumbled and begins again.", self.name)
        self._rest()

    def stop(self, seconds: float = 5.0) -> None:
        """Beat once more, then end."""
        self._stopped.set()
        self.waker.set()
        self.join(seconds)

    def _session(self) -> None:
        with notify.listen(notify.ENDPOINT, application_name=self.name) as connection:
            self.work.connected(connection)
            for names in self._waits(connection):
                if names:
                    self.work.heard(names)
                self.work.beat()
                self._back()

    def _waits(self, connection: Connection) -> Iterator[list[str]]:
        """The names notified during each wait. After ``stop``, even during a beat, one more."""
        yield []
        stopped = False
        while not stopped:
            self.waker.wait(0 if self._stopped.is_set() else self.seconds, connection)
            stopped = self._stopped.is_set()
            yield [heard.payload for heard in connection.notifications(0)]

    def _back(self) -> None:
        """Only after a beat: a read-only database accepts sessions, too."""
        if self._outage.is_over():
            log.warning("The console's database answers again.")
        self.failures = 0

    def _away(self, error: Exception) -> None:
        if self._outage.is_news(error):
            log.warning("The console's database %s; running on with what is known. %s", outage.describe(error), error)
        self._rest()

    def _rest(self) -> None:
        self.failures += 1
        connections["default"].close()
        self.waker.wait(min(LONGEST_WAIT, 0.25 * 2 ** min(self.failures, 8)))

"""Timed work of the lease queue's process, besides ending locks: sends schedules and applies retry rules."""

import time

import django.db
from django.conf import settings
from django.db import connections

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.lease.schedules import runner
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import lease_rules
from pgqueue_admin.workers.reporting import process_identity

EVERY = 60.0  # seconds between two looks while nothing is due
APART = 0.2  # least seconds between two looks
AT_MOST = 1.0  # seconds per turn of rules; no lock is ended meanwhile


class _Clock:
    def __init__(self) -> None:
        self._look_at = 0.0

    @property
    def rest(self) -> float:
        """Seconds until its next turn."""
        return max(0.0, self._look_at - time.monotonic())

    def put_off(self, seconds: float) -> None:
        """Another process is in charge, or the database is down."""
        self._look_at = max(self._look_at, time.monotonic() + seconds)

    def _look_in(self, seconds: float | None) -> None:
        """None: nothing is due."""
        if seconds is not None:
            self._look_at = time.monotonic() + min(EVERY, max(APART, seconds))


class ScheduleClock(_Clock):
    """Sends due schedules within their second, in a session of its own: a locked queue blocks only this session."""

    def __init__(self) -> None:
        super().__init__()
        self._who = f"supervisor on {process_identity.mine().host}"
        self.sent = 0

    def run_once(self) -> None:
        """Raises DatabaseError; the next look then comes a minute later."""
        if self.rest:
            return
        self._look_at = time.monotonic() + EVERY
        database = queue_database()
        with database.write_session(settings.PGQUEUE["ANSWER_SECONDS"]) as session:
            due_in = runner.due_in(session, database.dialect)  # before: later ones are sent now or next time
            self.sent += runner.run(session, database.dialect, self._who).sent
        self._look_in(due_in)


class RuleClock(_Clock):
    """Retries dead lease messages by due rules. Deaths are notified; it also looks once a minute.

    An error is reported and delays nothing else. ``trouble``: a sentence, or "".
    """

    def __init__(self) -> None:
        super().__init__()
        self.retried, self.trouble = 0, ""

    def wake(self) -> None:
        """A notification says that a message has died."""
        self._look_at = min(self._look_at, time.monotonic() + APART)

    def run_once(self) -> None:
        if self.rest:
            return
        self._look_at = time.monotonic() + EVERY
        try:
            self._look(settings.PGQUEUE["ANSWER_SECONDS"])
            self.trouble = ""
        except DatabaseError as error:
            self.trouble = f"Rules of the lease queue are not followed: {error}"
        except django.db.Error as error:
            connections["default"].close()
            self.trouble = f"Rules of the lease queue wait for the console's database, which keeps the audit: {error}"

    def _look(self, answer_seconds: float) -> None:
        due_in = lease_rules.due_in(answer_seconds)
        if due_in is not None and due_in <= 0:
            self.retried += lease_rules.apply(AT_MOST)
            due_in = lease_rules.due_in(answer_seconds)
        self._look_in(due_in)

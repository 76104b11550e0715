"""What the lease queue's process does by the clock, beside ending locks: schedules are sent, rules are followed."""

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
APART = 0.2  # seconds between two looks, however much is due
AT_MOST = 1.0  # seconds of one turn of rules, in which no lock is ended


class _Clock:
    def __init__(self) -> None:
        self._look_at = 0.0

    @property
    def rest(self) -> float:
        """Seconds until it wants its next turn."""
        return max(0.0, self._look_at - time.monotonic())

    def put_off(self, seconds: float) -> None:
        """It is not its turn, or the database does not answer."""
        self._look_at = max(self._look_at, time.monotonic() + seconds)

    def _look_in(self, seconds: float | None) -> None:
        """None: nothing is due."""
        if seconds is not None:
            self._look_at = time.monotonic() + min(EVERY, max(APART, seconds))


class ScheduleClock(_Clock):
    """Sends what is due at its second, in a session of its own: on a queue that somebody has locked it waits, and
    nothing else with it."""

    def __init__(self) -> None:
        super().__init__()
        self._who = f"supervisor on {process_identity.mine().host}"
        self.sent = 0

    def run_once(self) -> None:
        """Raises DatabaseError; then it looks again a minute later."""
        if self.rest:
            return
        self._look_at = time.monotonic() + EVERY
        database = queue_database()
        with database.write_session(settings.PGQUEUE["ANSWER_SECONDS"]) as session:
            due_in = runner.due_in(session, database.dialect)  # before: what comes due meanwhile is sent, or seen next
            self.sent += runner.run(session, database.dialect, self._who).sent
        self._look_in(due_in)


class RuleClock(_Clock):
    """Retries dead lease messages whose time has come by a rule: told of deaths, and looks once a minute.

    What fails here is said, and keeps nothing else waiting. ``trouble``: a sentence; empty: none.
    """

    def __init__(self) -> None:
        super().__init__()
        self.retried, self.trouble = 0, ""

    def wake(self) -> None:
        """Somebody has died, or seems to."""
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

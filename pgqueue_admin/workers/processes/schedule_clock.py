"""Sends what is due by the clock, at its second; looks once a minute while nothing is."""

import time

from django.conf import settings

from pgqueue_admin.lease.schedules import runner
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.workers.reporting import process_identity

EVERY = 60.0
APART = 0.2


class ScheduleClock:
    """In a session of its own: on a queue that somebody has locked it waits, and nothing else with it."""

    def __init__(self) -> None:
        self._who = f"supervisor on {process_identity.mine().host}"
        self._look_at = 0.0
        self.sent = 0

    @property
    def rest(self) -> float:
        """Seconds until it wants its next turn."""
        return max(0.0, self._look_at - time.monotonic())

    def put_off(self, seconds: float) -> None:
        """It is not its turn, or the database does not answer."""
        self._look_at = max(self._look_at, time.monotonic() + seconds)

    def turn(self) -> None:
        """Raises DatabaseError; then it looks again a minute later."""
        if self.rest:
            return
        self._look_at = time.monotonic() + EVERY
        database = queue_database()
        with database.writing(settings.PGQUEUE["ANSWER_SECONDS"]) as session:
            due_in = runner.due_in(session, database.dialect)  # before: what comes due meanwhile is sent, or seen next
            self.sent += runner.run(session, database.dialect, self._who).sent
        if due_in is not None:
            self._look_at = time.monotonic() + min(EVERY, max(APART, due_in))

"""The current time by the clock of the console's own database, independent of this host's clock."""

import time
from datetime import datetime, timedelta

import django.db
from django.db import connections
from django.utils import timezone

from pgqueue_admin.dialects.postgresql import postgresql

ASK_EVERY = 10.0  # seconds; in between this process counts on by itself


class DatabaseClock:
    """Its only use of the host's clock: until the database has answered once, there is no better one."""

    def __init__(self) -> None:
        self._told: tuple[datetime, float] | None = None
        self._ask_at = 0.0

    def now(self) -> datetime:
        """Costs a statement every ten seconds. Raises nothing: while the database is down, time goes on."""
        if time.monotonic() >= self._ask_at:
            self._ask_at = time.monotonic() + ASK_EVERY  # first, so that others do not ask as well
            self._ask()
        return self.counted()

    def counted(self) -> datetime:
        """As of the last answer, and counted on: for the event loop, which may not wait for a database."""
        if self._told is None:
            return timezone.now()
        told, at = self._told
        return told + timedelta(seconds=time.monotonic() - at)

    def _ask(self) -> None:
        try:
            with connections["default"].cursor() as cursor:
                asked = time.monotonic()
                cursor.execute(postgresql().monitor.server_time())
                told = cursor.fetchone()[0]
                self._told = told, (asked + time.monotonic()) / 2  # a slow answer is off by half of it at most
        except django.db.Error:
            return


_clock = DatabaseClock()
now, counted = _clock.now, _clock.counted


def of_host(instant: datetime) -> datetime:
    """An instant that this host's own clock gave, by the one clock."""
    return instant + (now() - timezone.now())

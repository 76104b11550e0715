"""The current time by the clock of the console's own database, independent of this host's clock."""

import time
from datetime import datetime, timedelta

import django.db
from django.db import connections
from django.utils import timezone

from pgqueue_admin.dialects.postgresql import postgresql

ASK_EVERY = 10.0  # seconds; in between, the process's monotonic clock counts on


class DatabaseClock:
    """Uses the host's clock only until the database has answered once."""

    def __init__(self) -> None:
        self._told: tuple[datetime, float] | None = None
        self._ask_at = 0.0

    def now(self) -> datetime:
        """Costs a statement every ten seconds. Never raises: while the database is down, the local clock counts on."""
        if time.monotonic() >= self._ask_at:
            self._ask_at = time.monotonic() + ASK_EVERY  # set first, so that other threads do not query as well
            self._ask()
        return self.counted()

    def counted(self) -> datetime:
        """The time of the last answer, counted on. For the event loop, which must not wait for a database."""
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
                self._told = told, (asked + time.monotonic()) / 2  # a slow answer is off by at most half its round trip
        except django.db.Error:
            return


_clock = DatabaseClock()
now, counted = _clock.now, _clock.counted


def of_host(instant: datetime) -> datetime:
    """Convert an instant of this host's clock to the database's clock."""
    return instant + (now() - timezone.now())

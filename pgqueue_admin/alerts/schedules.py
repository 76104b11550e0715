"""Schedules whose message should have been sent and was not."""

import time
from datetime import timedelta
from typing import Any

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models.queue_database import queue_database

EVERY = 30.0  # seconds between two looks of the alerter
LATE = timedelta(minutes=3)  # everybody who looks does so each minute


class ScheduleWatch:
    """For the alerter: rows of ``unsent`` (schedule.sql) at the last look; None until one was answered."""

    def __init__(self) -> None:
        self._look_at = 0.0
        self._unsent: list[Any] | None = None

    def unsent(self) -> list[Any] | None:
        """A database without tables for schedules has none."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + EVERY
            try:
                with queue_database().reading() as connection:
                    store = queue_database().dialect.schedules
                    is_there = store is not None and store.is_installed(connection)
                    self._unsent = store.unsent(connection, LATE) if store and is_there else []
            except DatabaseError:
                self._unsent = None
        return self._unsent

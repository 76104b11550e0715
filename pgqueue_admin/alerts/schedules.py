"""Schedules whose message should have been sent and was not."""

from datetime import timedelta
from typing import Any

from pgqueue_admin.alerts.periodic_look import PeriodicLook
from pgqueue_admin.models.queue_database import queue_database

EVERY = 30.0  # seconds between two looks of the alerter
LATE = timedelta(minutes=3)  # everybody who looks does so each minute


class ScheduleWatch(PeriodicLook[list[Any]]):
    """Rows of ``unsent`` (schedule.sql). A database without tables for schedules has none."""

    def __init__(self) -> None:
        super().__init__(EVERY)

    def _look(self) -> list[Any]:
        store = queue_database().dialect.schedules
        with queue_database().reading() as connection:
            return store.unsent(connection, LATE) if store and store.is_installed(connection) else []

"""Messages between two databases of which it should be known by now whether they arrived."""

from datetime import timedelta
from typing import Any

from pgqueue_admin.alerts.periodic_look import PeriodicLook
from pgqueue_admin.archive import crossings
from pgqueue_admin.models.queue_database import queue_database

EVERY = 30.0  # seconds between two looks of the alerter
LATE = timedelta(minutes=5)  # housekeeping asks each minute, and a chunk of large bodies may take some


class CrossingWatch(PeriodicLook[list[Any]]):
    """Rows of ``unsettled`` (crossing_intent.sql), one for each other database."""

    def __init__(self) -> None:
        super().__init__(EVERY)

    def _look(self) -> list[Any]:
        with queue_database().reading() as connection:
            return crossings.unsettled(connection, LATE)

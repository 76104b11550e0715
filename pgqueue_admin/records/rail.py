"""What stands right of the rail's names, and how new the figures are: read for every page, in one statement."""

from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import connections

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.records.processes import HEARTBEAT_LOST


class Counts(NamedTuple):
    """``warnings`` are open and acknowledged by nobody; ``critical`` are some of them; ``dead`` lie in the archive."""

    newest: datetime | None
    queues: int
    warnings: int
    critical: int
    dead: int | None
    operations: int
    endpoints: int
    wanted: int
    up: int  # as OfEndpoint.have counts them
    delayed: int  # all delayed tables together
    unmoved: int  # how many of those tables nobody seems to move from


def counts(late: timedelta) -> Counts:
    """``late``: what is due for longer than that and still there, nobody seems to move."""
    with connections["default"].cursor() as cursor:
        seconds = {"late": late.total_seconds(), "lost": HEARTBEAT_LOST.total_seconds()}
        cursor.execute(postgresql().rail.counts(newest=postgresql().rail.newest), seconds)
        return Counts(*cursor.fetchone())


def newest() -> datetime | None:
    """When queues were last looked at; None: never."""
    with connections["default"].cursor() as cursor:
        cursor.execute(postgresql().rail.how_new(newest=postgresql().rail.newest))
        return cursor.fetchone()[0]

"""What stands right of the rail's names, and how new the figures are: read for every page, in one statement."""

from datetime import datetime, timedelta
from typing import NamedTuple

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.records.asking import rows_of
from pgqueue_admin.records.processes import HEARTBEAT_LOST


class Counts(NamedTuple):
    """``warnings`` are open and acknowledged by nobody; ``critical`` are some of them; ``dead`` lie in the archive."""

    newest: datetime | None
    blind: str | None  # why nothing is read, as a sampler says that runs
    queues: int
    warnings: int
    critical: int
    dead: int | None
    operations: int
    endpoints: int
    wanted: int
    up: int  # as OfEndpoint.filled counts them
    broken: int  # of the console's own programs, sampler, alerter, Celery and others: kinds of which none works
    delayed: int  # all delayed tables together
    delayed_how: list[str] | None  # how each of these is known; None without any
    unmoved: int  # how many of those tables nobody seems to move from


def counts(late: timedelta) -> Counts:
    """``late``: what is due for longer than that and still there, nobody seems to move."""
    seconds = {"late": late.total_seconds(), "lost": HEARTBEAT_LOST.total_seconds()}
    parts = {"newest": postgresql().rail.newest, "blind": postgresql().rail.blind}
    return Counts(*rows_of(postgresql().rail.counts(**parts), seconds)[0])


def newest() -> datetime | None:
    """When queues were last looked at; None: never."""
    ((found,),) = rows_of(postgresql().rail.how_new(newest=postgresql().rail.newest))
    return found


def blind() -> str:
    """Why nothing is read, as a sampler says that runs."""
    asked = postgresql().rail.why_blind(blind=postgresql().rail.blind)
    ((said,),) = rows_of(asked, {"lost": HEARTBEAT_LOST.total_seconds()})
    return said or ""

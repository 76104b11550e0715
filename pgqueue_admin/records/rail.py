"""What stands right of the rail's names, and how new the figures are: read for every page, in one statement."""

from datetime import datetime, timedelta
from typing import NamedTuple

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.records import standings
from pgqueue_admin.records.asking import rows_of
from pgqueue_admin.records.processes import HEARTBEAT_LOST
from pgqueue_admin.records.standings import State


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
    teams: list[
        tuple[int, int, bool]
    ]  # of each endpoint of ours: processes wanted and running, and whether it is paused
    broken: int  # of the console's own programs, sampler, alerter, Celery and others: kinds of which none works
    delayed: int  # all delayed tables together
    delayed_how: list[str] | None  # how each of these is known; None without any
    unmoved: int  # how many of those tables nobody seems to move from

    @property
    def halted(self) -> int:
        """Endpoints of ours that do not run as they should, whoever it was that stopped them."""
        return sum(standings.state(*team) is not State.RUNNING for team in self.teams)

    @property
    def up(self) -> int:
        """As OfEndpoint.filled counts them."""
        return sum(min(want, have) for want, have, _ in self.teams)

    @property
    def should_run(self) -> int:
        """What is wanted, and one of each endpoint that was stopped."""
        return sum(max(want, 1) for want, _, _ in self.teams)


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

"""The counts in the navigation and the age of the figures: one statement for every page."""

from datetime import datetime, timedelta
from typing import NamedTuple

from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.models import Alert, Operation, endpoint_standings
from pgqueue_admin.models.endpoint_standings import State
from pgqueue_admin.models.processes import HEARTBEAT_LOST
from pgqueue_admin.models.queue_database import looked_at
from pgqueue_admin.models.raw_sql import console_sql, rows_of


class NavigationCounts(NamedTuple):
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
        return sum(endpoint_standings.state(*team) is not State.RUNNING for team in self.teams)

    @property
    def up(self) -> int:
        """As OfEndpoint.filled counts them."""
        return sum(min(want, have) for want, have, _ in self.teams)

    @property
    def should_run(self) -> int:
        """What is wanted, and one of each endpoint that was stopped."""
        return sum(max(want, 1) for want, _, _ in self.teams)


def counts(late: timedelta) -> NavigationCounts:
    """``late``: what is due for longer than that and still there, nobody seems to move."""
    about = {"late": late.total_seconds(), "lost": HEARTBEAT_LOST.total_seconds(), "others": _others()}
    parts = {"newest": console_sql.navigation_counts.newest, "blind": console_sql.navigation_counts.blind}
    found = NavigationCounts(*rows_of(console_sql.navigation_counts.counts(**parts), about)[0])
    return found if visible_queues.current() is None else _of_some(found)


def _of_some(found: NavigationCounts) -> NavigationCounts:
    """Of the queues that somebody may see. What was counted of all together stays unsaid."""
    visible = visible_queues.current()
    assert visible is not None
    told = Alert.objects.filter(resolved_at=None, acknowledged_at=None)
    return NavigationCounts(
        newest=found.newest,
        blind="" if found.blind is None else "some cannot be read",
        queues=visible.there,
        warnings=told.count(),
        critical=told.filter(severity=Alert.Severity.CRITICAL).count(),
        dead=None,
        operations=Operation.objects.filter(state__in=("waiting", "running")).count(),
        endpoints=0,
        teams=[],
        broken=0,
        delayed=0,
        delayed_how=None,
        unmoved=0,
    )


def newest() -> datetime | None:
    """When queues of the first database were last looked at; None: never."""
    asked = console_sql.navigation_counts.how_new(newest=console_sql.navigation_counts.newest)
    ((found,),) = rows_of(asked, {"others": _others()})
    return found


def _others() -> list[str]:
    r"""Patterns of schemas in other databases, in which ``_`` is no wildcard."""
    return [each.alias.replace("_", r"\_") + ":%" for each in looked_at()]


def blind() -> str:
    """Why nothing is read, as a sampler says that runs."""
    asked = console_sql.navigation_counts.why_blind(blind=console_sql.navigation_counts.blind)
    ((said,),) = rows_of(asked, {"lost": HEARTBEAT_LOST.total_seconds()})
    return said or ""

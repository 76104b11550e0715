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
    """``warnings``: open and not acknowledged; ``critical``: the critical ones of these; ``dead``: in the archive."""

    newest: datetime | None
    blind: str | None  # why queues cannot be read, as a live sampler reports
    queues: int
    warnings: int
    critical: int
    dead: int | None
    operations: int
    endpoints: int
    teams: list[tuple[int, int, bool]]  # per endpoint of ours: desired and running processes, whether paused
    broken: int  # the console's own programs (sampler, alerter, Celery and others): kinds with no live process
    delayed: int  # messages in all delayed tables together
    delayed_how: list[str] | None  # how their counts are known; None without delayed tables
    unmoved: int  # delayed tables that nothing seems to move messages out of

    @property
    def halted(self) -> int:
        """Endpoints of ours that are paused, stopped or short of processes, for whatever reason."""
        return sum(endpoint_standings.state(*team) is not State.RUNNING for team in self.teams)

    @property
    def up(self) -> int:
        """Running processes that are desired, as EndpointProcesses.filled counts them."""
        return sum(min(want, have) for want, have, _ in self.teams)

    @property
    def should_run(self) -> int:
        """Desired processes, counting one for each stopped endpoint."""
        return sum(max(want, 1) for want, _, _ in self.teams)


def counts(late: timedelta) -> NavigationCounts:
    """``late``: how long a message may be overdue before its delayed table counts as unmoved."""
    about = {"late": late.total_seconds(), "lost": HEARTBEAT_LOST.total_seconds(), "others": _others()}
    parts = {"newest": console_sql.navigation_counts.newest, "blind": console_sql.navigation_counts.blind}
    found = NavigationCounts(*rows_of(console_sql.navigation_counts.counts(**parts), about)[0])
    return found if visible_queues.current() is None else _of_some(found)


def _of_some(found: NavigationCounts) -> NavigationCounts:
    """Counts of the queues that the viewer may see. Totals over all queues are left out."""
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
    """When queues of the first database were last sampled; None: never."""
    asked = console_sql.navigation_counts.how_new(newest=console_sql.navigation_counts.newest)
    ((found,),) = rows_of(asked, {"others": _others()})
    return found


def _others() -> list[str]:
    r"""LIKE patterns of the other databases' schemas, with ``_`` escaped."""
    return [each.alias.replace("_", r"\_") + ":%" for each in looked_at()]


def blind() -> str:
    """Why queues cannot be read, as a live sampler reports; else ""."""
    asked = console_sql.navigation_counts.why_blind(blind=console_sql.navigation_counts.blind)
    ((said,),) = rows_of(asked, {"lost": HEARTBEAT_LOST.total_seconds()})
    return said or ""

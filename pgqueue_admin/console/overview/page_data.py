"""Everything that Overview shows, read once: for a request, and for the live topic."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from pgqueue_admin.console.overview import headline as verdict
from pgqueue_admin.console.overview import needs_attention as needs
from pgqueue_admin.console.overview import totals
from pgqueue_admin.console.queue_row import rows as queue_rows
from pgqueue_admin.console.verdicts import Verdict
from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.models import Alert, database_clock, navigation_counts, processes, readability, staleness
from pgqueue_admin.models import endpoint_standings as standings
from pgqueue_admin.models.endpoint_standings import Standing
from pgqueue_admin.models.queue_overview import dead, dead_then

BACKLOG = 8
CAUSES = 5
GROWING = timedelta(minutes=10)


def _most_first(alert: Alert) -> tuple[int, str]:
    lying = "".join(digit for digit in alert.value if digit.isdecimal())  # grouped, never shortened below 100 M
    return -int(lying or 0), alert.cause


@dataclass
class OverviewData:
    """``since``: what began later is new to this person."""

    since: datetime
    now: datetime = field(default_factory=database_clock.now)

    @cached_property
    def rows(self) -> list[queue_rows.QueueRow]:
        return queue_rows.worst_first(queue_rows.load(standing=self.standings, alerts=self.alerts))

    @cached_property
    def standings(self) -> list[Standing]:
        return standings.of(self.teams)

    @cached_property
    def teams(self) -> list[processes.EndpointProcesses]:
        return processes.by_endpoint()

    @cached_property
    def alerts(self) -> list[Alert]:
        return list(Alert.objects.filter(resolved_at=None))

    @cached_property
    def needs(self) -> needs.ShownNeeds:
        found = needs.find(self.alerts, self.rows)
        piles = [need.row.queue.pk for need in found if need.row and need.counts_dead and not need.acknowledged]
        needs.note_growth(found, dead_then(piles, self.now - GROWING) if piles else {})
        return needs.parts(found, self.since)

    @property
    def advice(self) -> list[str]:
        return needs.advice([*self.needs.new[: needs.MOST], *self.needs.older[: needs.MOST]])

    @cached_property
    def blind(self) -> verdict.Blind | None:
        """Set if so many samples were missed that figures are stale, or if most queues cannot be read."""
        newest = navigation_counts.newest()
        if newest and staleness.is_stale(newest, self.now):
            return verdict.Blind(newest, "" if visible_queues.current() else navigation_counts.blind())
        seen = readability.of((row.latest for row in self.rows if row.latest), self.now)
        return verdict.Blind(seen.since, seen.why, seen) if seen.is_blind and seen.since else None

    @cached_property
    def verdict(self) -> Verdict:
        return verdict.judge(self.needs, self.alerts, self.rows, self.standings, self.blind)

    @cached_property
    def _totals(self) -> totals.Totals:
        return totals.Totals(self.rows, self.teams, self.causes, dead(self.now), self.now)

    @property
    def totals(self) -> list[totals.Total]:
        return self._totals.all()

    @property
    def archived(self) -> int | None:
        """Dead messages in the archive, also those of queues that are gone."""
        return self._totals.archive.archived

    @property
    def lying(self) -> int | None:
        """Dead messages in error queues."""
        return self._totals.lying()

    @cached_property
    def backlog(self) -> list[queue_rows.QueueRow]:
        """Queues with waiting messages or off target, worst first."""
        waiting = [row for row in self.rows if row.state or (row.waiting and row.queue.kind not in queue_rows.BESIDE)]
        return waiting[:BACKLOG]

    @cached_property
    def within(self) -> list[queue_rows.QueueRow]:
        """All other queues, by name, for the board at the end."""
        above = {row.key for row in self.backlog}
        return sorted((row for row in self.rows if row.key not in above), key=lambda row: row.address.table.lower())

    @cached_property
    def causes(self) -> list[Alert]:
        """Dead messages by the queue they died in and by cause."""
        return sorted((alert for alert in self.alerts if alert.kind == "dead_message"), key=_most_first)

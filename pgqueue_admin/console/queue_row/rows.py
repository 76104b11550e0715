"""Rows of queues: each with its newest sample, its verdict and its consumers. Few statements."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from pgqueue_admin.console import url_converters
from pgqueue_admin.dialects import Address
from pgqueue_admin.formatting.numbers import NOT_SEEN, UNKNOWN
from pgqueue_admin.formatting.trends import Trend, trend
from pgqueue_admin.models import Alert, Queue, database_clock, endpoint_standings, processes, queue_overview, samples
from pgqueue_admin.models.endpoint_standings import Standing
from pgqueue_admin.monitor import targets
from pgqueue_admin.services import consumers
from pgqueue_admin.services.queues import subject

UNCOUNTED = frozenset({"subscription", "unknown"})  # no messages to receive
BESIDE = frozenset({"delayed", "subscription", "archive", "unknown"})  # never listed as waiting
_POINTS = 30  # of an hour's sparkline
_STEP = 3600 // _POINTS  # seconds


_CLASSES = (
    (targets.TargetState.CRITICAL, "crit"),
    (targets.TargetState.WARNING, "warn"),
    (targets.TargetState.PAUSED, "paused"),
)


@dataclass
class QueueRow:
    """One queue as pages show it."""

    queue: queue_overview.Known
    latest: queue_overview.Newest | None
    now: datetime
    standing: Standing | None = None  # of our endpoint that receives here
    points: list[int | None] = field(default_factory=list)
    breach_since: datetime | None = None  # the oldest open warning about it
    warned: str = ""  # the gravest of those: critical or warning

    @cached_property
    def key(self) -> str:
        return f"q{self.queue.pk}"

    @cached_property
    def address(self) -> Address:
        return Address(self.queue.schema, self.queue.table)

    @property
    def path(self) -> str:
        return url_converters.queue(self.address)

    @cached_property
    def verdict(self) -> targets.TargetVerdict:
        """A queue that is not measured yet exceeds no target."""
        if self.latest is None:
            return targets.TargetVerdict(targets.TargetState.OK)
        return targets.against(self.queue, self.latest, self.now, self.paused)

    @cached_property
    def state(self) -> str:
        """The class of the table row: crit, warn, paused or nothing. The worse of targets and warnings counts."""
        said = {str(self.verdict.state), self.warned}
        return next((css for state, css in _CLASSES if state in said), "")

    @property
    def team(self) -> processes.EndpointProcesses | None:
        return self.standing.team if self.standing else None

    @property
    def paused(self) -> bool:
        """Whether our endpoint that receives here is paused."""
        return self.standing is not None and self.standing.endpoint.paused

    @property
    def dead_how(self) -> str:
        """How the dead are known: an error queue's as its depth, since every row is dead; the archive's are counted."""
        return self.latest.how if self.latest and self.queue.kind == "error" else "counted"

    @property
    def judged_age(self) -> int | None:
        """The target for its age; None while its endpoint is paused."""
        return None if self.paused else self.queue.target_age_seconds

    @property
    def waiting(self) -> int:
        return (self.latest.ready or 0) if self.latest else 0

    @property
    def total(self) -> int:
        return sum(self.make_up)

    @property
    def make_up(self) -> tuple[int, int, int, int]:
        figures = self.latest
        if figures is None:
            return 0, 0, 0, 0
        return figures.ready or 0, figures.in_flight or 0, figures.delayed or 0, figures.expired or 0

    @cached_property
    def age(self) -> float | None:
        return targets.age(self.latest, self.now) if self.latest else None

    @property
    def no_age(self) -> str:
        """What is shown without an age: nothing waits, or its time cannot be seen."""
        return NOT_SEEN if self.latest and targets.age_is_unknown(self.latest) else UNKNOWN

    @cached_property
    def trend(self) -> Trend:
        figures = self.latest
        if figures is None:
            return Trend("not counted" if self.queue.kind in UNCOUNTED else "not counted yet")
        if figures.error:
            return Trend("cannot be read")
        return trend(figures.ready, figures.in_per_second, figures.out_per_second, self.queue.kind)

    @property
    def entering(self) -> float | None:
        """Messages per second; None if unknown, also if it cannot be read any more."""
        return self.latest.in_per_second if self.latest and not self.latest.error else None

    @property
    def leaving(self) -> float | None:
        return self.latest.out_per_second if self.latest and not self.latest.error else None

    @property
    def leaving_how(self) -> str:
        """Above the cap it is estimated from the movement of the head."""
        figures = self.latest
        if figures is None or (figures.how == "counted" and not self._delayed_are_part(figures)):
            return "counted"
        return "estimate"

    def _delayed_are_part(self, figures: queue_overview.Newest) -> bool:
        """A lease queue keeps delayed messages in its table: unless they are counted, the rate is not."""
        return self.queue.kind == "lease" and figures.delayed_how != "counted"

    @property
    def growth(self) -> float:
        return (self.entering or 0.0) - (self.leaving or 0.0)

    @property
    def span(self) -> int | None:
        figures = self.latest
        if figures is None or figures.head_seq is None or figures.tail_seq is None:
            return None
        return figures.tail_seq - figures.head_seq + 1

    @cached_property
    def consumers(self) -> consumers.ConsumerText:
        return consumers.said(self.queue, self.latest, self.standing, self.now)


def load(
    queues: Iterable[Queue] | None = None,
    standing: Iterable[Standing] | None = None,
    alerts: Iterable[Alert] | None = None,
) -> list[QueueRow]:
    """Rows of these queues, or of all that exist.

    Standings of endpoints and open warnings are read unless the caller has them.
    """
    now = database_clock.now()
    found = queue_overview.rows() if queues is None else [(queue, getattr(queue, "latest", None)) for queue in queues]
    stands = endpoint_standings.of(processes.by_endpoint()) if standing is None else standing
    by_endpoint = {each.endpoint.name: each for each in stands}
    warned = _warned(Alert.objects.filter(resolved_at=None) if alerts is None else alerts)
    rows = [QueueRow(queue, latest, now, by_endpoint.get(queue.endpoint)) for queue, latest in found]
    for row in rows:
        row.breach_since, row.warned = warned.get(subject(row.queue), _CALM) if warned else _CALM
    return rows


_CALM: tuple[datetime | None, str] = (None, "")


def _warned(alerts: Iterable[Alert]) -> dict[str, tuple[datetime | None, str]]:
    """Address → when its oldest open, unacknowledged warning began, and the gravest severity."""
    found: dict[str, list[Alert]] = {}
    for alert in alerts:
        if alert.queue and alert.acknowledged_at is None:
            found.setdefault(alert.queue, []).append(alert)
    return {
        queue: (min(each.opened_at for each in group), min(each.severity for each in group))  # critical comes first
        for queue, group in found.items()
    }


def ranks(rows: Iterable[QueueRow]) -> str:
    """``,12:3,8:1``: queues off target, with severity. A page with its rows in another order says so (CONSOLE L2)."""
    return "".join(f",{row.queue.pk}:{rank}" for row in rows if (rank := row.verdict.badness[0]))


def worst_first(rows: Iterable[QueueRow]) -> list[QueueRow]:
    """Sort by how far past its target, then by growth (CONSOLE 4, Overview 4)."""
    return sorted(rows, key=_badness)


def _badness(row: QueueRow) -> tuple[int, float, float, int, str, str]:
    severity, ratio = row.verdict.badness
    beside = row.queue.kind in BESIDE
    return -severity, -ratio, -row.growth, 0 if beside else -row.waiting, *row.address


def with_history(rows: list[QueueRow]) -> list[QueueRow]:
    """Add the last hour to these rows."""
    points = last_hour([row.queue.pk for row in rows], rows[0].now) if rows else {}
    for row in rows:
        row.points = points.get(row.queue.pk, [])
    return rows


def last_hour(queue_ids: Iterable[int], now: datetime) -> dict[int, list[int | None]]:
    """Thirty points a queue: the maximum of ready in each two minutes. A missing sample leaves a gap."""
    first = int(now.timestamp()) // _STEP - _POINTS + 1
    points: dict[int, list[int | None]] = defaultdict(lambda: [None] * _POINTS)
    for queue_id, step, ready in samples.most_ready(queue_ids, now - timedelta(seconds=3600 + _STEP), _STEP):
        if 0 <= step - first < _POINTS:
            points[queue_id][step - first] = ready
    return points


def longest(rows: Iterable[QueueRow]) -> int:
    """The scale of the make-up strips: the largest total that was counted to the end."""
    finite = [row.total for row in rows if row.latest and row.latest.how == "counted"]
    return max(finite, default=1) or 1

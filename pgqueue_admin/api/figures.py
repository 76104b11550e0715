"""Metric families, read from the same functions as the pages. An unknown figure is never written as 0."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from django.db.models import Count
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pgqueue_admin.history.freshness import HistoryFreshness
from pgqueue_admin.models import (
    Alert,
    Operation,
    database_clock,
    navigation_counts,
    processes,
    queue_overview,
    staleness,
)
from pgqueue_admin.models.queue_overview import QueueFacts, QueueFigures
from pgqueue_admin.monitor import targets

MOST_QUEUES = 2_000  # labels are foreign table names: creating tables must not fill the monitoring's memory
MOST_CAUSES = 50
LONGEST_CAUSE = 200  # characters; all other labels are bounded by their columns
_OPEN = tuple(state for state in Operation.State if state not in ("done", "cancelled", "lapsed"))

QueueRow = tuple[QueueFacts, QueueFigures | None]
Labelled = tuple[Sequence[str], float | None]

_QUEUE = ("schema", "queue", "kind")
_AS_MEASURED = ("depth", "ready", "in_flight", "delayed", "expired", "dead", "in_per_second", "out_per_second")
METRICS: dict[str, tuple[Sequence[str], str]] = {  # labels, help
    "pgqueue_sample_age_seconds": ((), "Since the newest sample; absent before the first."),
    "pgqueue_samples_stale": ((), "1 while samples are missing: figures of queues are absent then."),
    "pgqueue_queues": ((), "Queues that the console knows."),
    "pgqueue_queues_left_out": ((), f"Queues without metrics here, beyond the first {MOST_QUEUES} by address."),
    "pgqueue_queue_readable": (_QUEUE, "0 while the queue cannot be read."),
    "pgqueue_queue_counted": (_QUEUE, "1 if depth and ready are counted, 0 if capped (at least so many) or estimated."),
    "pgqueue_queue_depth": (_QUEUE, "Rows in the table."),
    "pgqueue_queue_ready": (_QUEUE, "Messages available to receive."),
    "pgqueue_queue_in_flight": (_QUEUE, "Messages that a receiver holds."),
    "pgqueue_queue_delayed": (_QUEUE, "Delayed messages that will go to this queue."),
    "pgqueue_queue_expired": (_QUEUE, "Messages whose time to be received has passed."),
    "pgqueue_queue_dead": (_QUEUE, "Dead messages of this queue."),
    "pgqueue_queue_in_per_second": (_QUEUE, "Messages that arrived a second."),
    "pgqueue_queue_out_per_second": (_QUEUE, "Messages that left a second."),
    "pgqueue_queue_oldest_age_seconds": (
        _QUEUE,
        "How long the oldest ready message has waited; absent without one, or where it was not seen.",
    ),
    "pgqueue_archive_dead": ((), "Dead messages in the archive, also of queues that are gone."),
    "pgqueue_dead_by_cause": (("queue", "cause"), f"Dead messages by open warning: the {MOST_CAUSES} largest."),
    "pgqueue_warnings": (("severity",), "Open warnings that nobody acknowledged."),
    "pgqueue_endpoint_processes_wanted": (("endpoint",), "Processes wanted."),
    "pgqueue_endpoint_processes_running": (("endpoint",), "Processes that run."),
    "pgqueue_operations": (("state",), "Operations that have not ended."),
    "pgqueue_history_complete_to_timestamp_seconds": (
        (),
        "Up to when history is complete; absent until every table was read to its end.",
    ),
}


class ConsoleFigures(Collector):
    """One scrape: a few statements on the console's database, none on the queue database."""

    def __init__(self) -> None:
        self.now = database_clock.now()
        self.newest = navigation_counts.newest()

    @property
    def is_stale(self) -> bool:
        return staleness.is_stale(self.newest, self.now)

    def collect(self) -> Iterator[Metric]:
        yield from self._samples()
        if not self.is_stale:
            yield from self._queues()
            yield from self._dead()
        yield from self._warnings()
        yield from self._processes()
        yield from self._operations()
        yield from self._history()

    def _samples(self) -> Iterator[Metric]:
        age = staleness.age(self.newest, self.now) if self.newest else None
        yield _one("pgqueue_sample_age_seconds", age)
        yield _one("pgqueue_samples_stale", self.is_stale)

    def _queues(self) -> Iterator[Metric]:
        found = queue_overview.rows()
        shown = found[:MOST_QUEUES]
        yield _one("pgqueue_queues", len(found))
        yield _one("pgqueue_queues_left_out", len(found) - len(shown))
        measured = [(facts, figures) for facts, figures in shown if figures]
        yield _of_queues("readable", [(q, not f.error) for q, f in measured])
        read = [(facts, figures) for facts, figures in measured if not figures.error]
        yield _of_queues("counted", [(q, f.how == "counted") for q, f in read])
        for name in _AS_MEASURED:
            yield _of_queues(name, [(facts, getattr(figures, name)) for facts, figures in read])
        yield _of_queues("oldest_age_seconds", [(q, targets.age(f, self.now)) for q, f in read])

    def _dead(self) -> Iterator[Metric]:
        yield _one("pgqueue_archive_dead", queue_overview.dead(self.now).archived)
        rows = [((queue, cause), count) for (queue, cause), count in _dead_by_cause().most_common(MOST_CAUSES)]
        yield _family("pgqueue_dead_by_cause", rows)

    def _warnings(self) -> Iterator[Metric]:
        held = Alert.objects.filter(resolved_at=None, acknowledged_at=None).values_list("severity")
        counts = dict(held.order_by().annotate(Count("pk")))
        rows: list[Labelled] = [((severity,), counts.get(severity, 0)) for severity in Alert.Severity.values]
        yield _family("pgqueue_warnings", rows)

    def _processes(self) -> Iterator[Metric]:
        teams = processes.by_endpoint()
        wanted: list[Labelled] = [((team.endpoint.name,), team.want) for team in teams]
        running: list[Labelled] = [((team.endpoint.name,), team.have) for team in teams]
        yield _family("pgqueue_endpoint_processes_wanted", wanted)
        yield _family("pgqueue_endpoint_processes_running", running)

    def _operations(self) -> Iterator[Metric]:
        held = Operation.objects.filter(state__in=_OPEN).values_list("state")
        counts = dict(held.order_by().annotate(Count("pk")))
        rows: list[Labelled] = [((state.value,), counts.get(state.value, 0)) for state in _OPEN]
        yield _family("pgqueue_operations", rows)

    def _history(self) -> Iterator[Metric]:
        yield _one("pgqueue_history_complete_to_timestamp_seconds", _timestamp(HistoryFreshness().watermark))


def _dead_by_cause() -> Counter[tuple[str, str]]:
    """Counts as Overview lists them. Causes equal up to the cut are added up: no series may repeat."""
    found: Counter[tuple[str, str]] = Counter()
    for alert in Alert.objects.filter(resolved_at=None, kind="dead_message"):
        found[alert.queue, alert.cause[:LONGEST_CAUSE]] += alert.count
    return found


def _timestamp(at: datetime | None) -> float | None:
    return at.timestamp() if at else None


def _one(name: str, value: float | None) -> Metric:
    return _family(name, [((), value)])


def _of_queues(name: str, rows: Iterable[tuple[QueueFacts, float | None]]) -> Metric:
    labelled = (((queue.schema, queue.table, queue.kind), value) for queue, value in rows)
    return _family(f"pgqueue_queue_{name}", labelled)


def _family(name: str, rows: Iterable[Labelled]) -> Metric:
    labels, about = METRICS[name]
    family = GaugeMetricFamily(name, about, labels=labels)
    for values, value in rows:
        if value is not None:
            family.add_metric(values, float(value))
    return family

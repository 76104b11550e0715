"""Anomalies in a window, as Trends lists them: each with its numbers, its own window and its messages."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import Q
from django.urls import reverse

from pgqueue_admin.console import url_converters
from pgqueue_admin.console.trends import drilldown
from pgqueue_admin.console.trends.previous_week import WEEK
from pgqueue_admin.console.trends.time_range import TimeRange
from pgqueue_admin.dialects import Address, visible_queues
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting import anomaly, times
from pgqueue_admin.history.anomalies import findings
from pgqueue_admin.history.anomalies import hourly_totals as seen
from pgqueue_admin.history.anomalies.detector import FAILURES
from pgqueue_admin.history.anomalies.findings import AnomalyPeriod
from pgqueue_admin.history.rollups import baseline as usual
from pgqueue_admin.history.rollups.queries import TrendQuery
from pgqueue_admin.models import Anomaly, Endpoint
from pgqueue_admin.models.queue_database import queue_database

SHOWN = 20
AROUND = timedelta(hours=12)  # shown before and after, to compare with
Inputs = dict[str, Address]  # endpoint name → its input queue


@dataclass(frozen=True, slots=True)
class AnomalyLine:
    stretch: AnomalyPeriod
    inputs: Inputs

    @property
    def row(self) -> Anomaly:
        return self.stretch.worst

    @property
    def queue(self) -> Address | None:
        return _address(self.row.queue) if self.row.queue else self.inputs.get(self.row.endpoint)

    @property
    def name(self) -> str:
        return self.row.endpoint or (self.queue.table if self.queue else self.row.queue)

    @property
    def what(self) -> str:
        return anomaly.WORDS[self.row.kind]

    @property
    def seen(self) -> str:
        return anomaly.seen(self.row.kind, self.row.observed, self.row.messages, self.row.timed)

    @property
    def usual(self) -> str:
        return anomaly.usual(self.row.kind, self.row.observed, self.row.median, self.row.low, self.row.high)

    @property
    def known(self) -> str:
        return anomaly.KNOWN[self.row.kind]

    @property
    def trends(self) -> str:
        """Trends of this anomaly alone, with some hours around it."""
        names = {"endpoint": self.row.endpoint} if self.row.endpoint else {"queue": self.row.queue}
        ends = {"since": self.stretch.since - AROUND, "until": self.stretch.until + AROUND}
        return f"{reverse('trends')}?" + urlencode(
            {
                **names,
                **({"type": self.row.type} if self.row.type else {}),
                **{k: times.iso(at) for k, at in ends.items()},
            }
        )

    @property
    def messages(self) -> str:
        """Its failed messages, or what is in the queue now; empty if the queue is unknown."""
        if self.row.kind == FAILURES:
            asked = TrendQuery(
                self.stretch.since, self.stretch.until, "hour", self.row.queue, self.row.endpoint, self.row.type
            )
            return drilldown.died(asked, self.stretch.since, self.stretch.until - self.stretch.since)
        return url_converters.queue(self.queue, "messages") if self.queue else ""


class Anomalies:
    def __init__(self, window: TimeRange):
        self.window = window

    @cached_property
    def found(self) -> list[AnomalyLine]:
        """Anomalies in order of their beginning, the latest first."""
        asked, inputs = self.window.asked, _inputs()
        return [
            AnomalyLine(each, inputs) for each in findings.stretches(asked.since, asked.until, which(asked, inputs))
        ]

    @property
    def lines(self) -> list[AnomalyLine]:
        return self.found[:SHOWN]

    @cached_property
    def judged_to(self) -> datetime | None:
        return seen.newest()

    @cached_property
    def judged_from(self) -> datetime | None:
        """Older hours had too few weeks before them, or their findings are not kept any more."""
        first = seen.oldest()
        return first + self.least_weeks * WEEK if first else None

    @property
    def begins_later(self) -> bool:
        return self.judged_from is not None and self.is_judged and self.window.asked.since < self.judged_from

    @property
    def is_judged(self) -> bool:
        """Whether any hour of the window was judged; of others it is unknown whether they were unusual."""
        begin, end, asked = self.judged_from, self.judged_to, self.window.asked
        return bool(begin and end and max(begin, asked.since) < min(end, asked.until))

    @property
    def weeks_kept(self) -> int:
        return seen.KEPT_FOR["hour"] // WEEK

    @property
    def zone(self) -> str:
        """The time zone in which hours of the week are counted."""
        return str(settings.PGQUEUE["BASELINE_TIME_ZONE"])

    @property
    def least_weeks(self) -> int:
        return usual.LEAST_WEEKS


def which(asked: TrendQuery, inputs: Inputs) -> Q:
    """The filter for the page's choice; findings about a whole queue apply to each of its types."""
    chosen = Q()
    if visible_queues.current():  # one of their queues is chosen; findings of an endpoint are of all its queues
        inputs = {}
    if asked.endpoint:
        chosen &= Q(endpoint=asked.endpoint)
    if asked.queue:
        address = _address(asked.queue)
        chosen &= Q(queue=asked.queue) | Q(endpoint__in=[name for name, each in inputs.items() if each == address])
    if asked.type:
        chosen &= Q(type__in=[asked.type, ""]) if asked.endpoint or asked.queue else Q(type=asked.type)
    return chosen


def _inputs() -> Inputs:
    return {each.name: Address(each.schema, each.table) for each in Endpoint.objects.all()}


def _address(text: str) -> Address | None:
    try:
        return queue_database().dialect.parse_address(text, queue_database().default_schema)
    except AddressUnreadable:
        return None

"""The data of Trends: how much finished, how much failed, how long it took, in words, as lines and as a table."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

from pgqueue_admin.console.trends import drilldown
from pgqueue_admin.console.trends.anomalies import Anomalies
from pgqueue_admin.console.trends.baseline import BaselineRanges, Baselines
from pgqueue_admin.console.trends.coverage import SO_FAR, Coverage
from pgqueue_admin.console.trends.depth import DepthChart
from pgqueue_admin.console.trends.heatmap import Heatmap
from pgqueue_admin.console.trends.heatmap_svg import HeatmapSvg
from pgqueue_admin.console.trends.previous_week import WithPreviousWeek, both
from pgqueue_admin.console.trends.slowest_types import SlowestTypes
from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.formatting.anomaly import span
from pgqueue_admin.formatting.durations import nearest
from pgqueue_admin.formatting.numbers import UNKNOWN, format_int, per_cent, share
from pgqueue_admin.history.rollups import queries
from pgqueue_admin.history.rollups.queries import MEASURES, MessageCounts
from pgqueue_admin.models import database_clock
from pgqueue_admin.models.trends_retention import failures_from

MEASURE_WORDS = {
    "critical": "Critical time: sent until done",
    "processing": "Processing time: in the handler",
    "delivery": "Delivery time: sent until a handler began",
}


class EarlierValue(NamedTuple):
    """The same step a week earlier."""

    counts: MessageCounts | None
    p95: float | None

    @property
    def span(self) -> str:
        return _span(self.p95)


@dataclass(frozen=True, slots=True)
class ChartBucket:
    at: datetime
    counts: MessageCounts
    percentiles: queries.Percentiles | None
    retried: int | None
    messages: str  # address of the failed ones
    finished: str  # address of those that succeeded
    usual: BaselineRanges
    before: EarlierValue
    known: str  # as Coverage has it

    @property
    def is_so_far(self) -> bool:
        return self.known == SO_FAR

    @property
    def shares(self) -> list[str]:
        """Shares of failures, now and a week before."""
        return [share(each.share_failed if each else None) for each in (self.counts, self.before.counts)]

    @property
    def spans(self) -> list[str]:
        return [_span(each) for each in self.percentiles or (None, None, None)]


class TrendsData:
    def __init__(self, reach: Coverage, measure: str, table: str = ""):
        """``table``: which chart is also shown as a table."""
        self.reach, self.window = reach, reach.window
        self.measure, self.table = measure if measure in MEASURES else "critical", table
        self.depth, self.unusual = DepthChart(self.window), Anomalies(self.window)
        self.usual, self.types = Baselines(self.window, self.measure), SlowestTypes(reach, self.measure)

    @cached_property
    def _counts(self) -> WithPreviousWeek[MessageCounts]:
        return self.reach.only(both(self.window, queries.counts))

    @cached_property
    def _timings(self) -> WithPreviousWeek[queries.Timings]:
        return self.reach.only(both(self.window, lambda asked: queries.timings(asked, self.measure)))

    @property
    def counts(self) -> dict[int, MessageCounts]:
        return self._counts.now

    @property
    def timings(self) -> dict[int, queries.Timings]:
        return self._timings.now

    @cached_property
    def percentiles(self) -> dict[int, queries.Percentiles]:
        return {at: timings.percentiles for at, timings in self.timings.items()}

    @cached_property
    def heat(self) -> Heatmap:
        return Heatmap(self.reach, self.timings, self.counts, self.measure)

    @property
    def drawing(self) -> HeatmapSvg:
        return HeatmapSvg(self.heat)

    @cached_property
    def failures(self) -> list[tuple[queries.FailureCause, str, str]]:
        """Each with the address of its messages, and of all of its error if the archive has all of them."""
        asked, found = self.window.asked, queries.failures(self.window.asked, self._failures_from)
        return [
            (each, drilldown.fingerprinted(asked, each.fingerprint), drilldown.caused(asked, each.exception))
            for each in found
        ]

    @property
    def new_failures(self) -> int:
        return sum(each.is_new for each, *_ in self.failures)

    @cached_property
    def retry_outcomes(self) -> list[queries.MessageOutcome]:
        """Empty under a queue scope: what became of messages is counted over all queues."""
        return [] if visible_queues.current() else queries.retry_outcomes(self.window.asked)

    @cached_property
    def _failures_from(self) -> datetime | None:
        return failures_from(database_clock.now())

    @property
    def forgotten_to(self) -> datetime | None:
        """Until when only numbers are left of failures in this window; None: all of them are known."""
        kept = self._failures_from
        return kept if kept and kept > self.window.asked.since else None

    @cached_property
    def _retried(self) -> dict[int, int] | None:
        """None: unknown for a queue."""
        if self.window.asked.queue:
            return None
        found = queries.retried(self.window.asked)
        return {at: number for at, number in found.items() if not self.reach.is_unread(at)}

    @property
    def retried(self) -> int | None:
        return None if self._retried is None or self.forgotten_to else sum(self._retried.values())

    @property
    def measure_words(self) -> str:
        return MEASURE_WORDS[self.measure]

    @cached_property
    def succeeded(self) -> int | None:
        """None: unknown for this queue."""
        known = [each.succeeded for each in self.counts.values() if each.succeeded is not None]
        return sum(known) if known or not self.window.asked.queue else None

    @cached_property
    def failed(self) -> int:
        return sum(each.failed for each in self.counts.values())

    @property
    def skewed(self) -> int:
        return sum(each.skewed for each in self.counts.values())

    @property
    def is_empty(self) -> bool:
        return not self.counts

    @property
    def share_failed(self) -> str:
        return share(MessageCounts(self.succeeded, self.failed, self.skewed).share_failed)

    @cached_property
    def slowest(self) -> ChartBucket | None:
        """The step whose 95th percentile is highest."""
        found = max(self.percentiles.items(), key=lambda each: each[1].p95, default=None)
        return self._step(found[0]) if found else None

    @property
    def steps(self) -> list[ChartBucket]:
        """Steps in which something finished, newest first."""
        return [self._step(at) for at in sorted(self.counts, reverse=True)]

    @cached_property
    def sentence(self) -> str:
        """The chart in words, for people who do not see it."""
        return f"{self._said} {self.reach.sentence}".strip()

    @property
    def _said(self) -> str:
        if self.is_empty:
            return "Nothing finished in this window."
        said = f"{format_int(self.failed)} failed; what succeeded names its endpoint, not its queue."
        if self.succeeded is not None:
            said = f"{format_int(self.succeeded)} succeeded and {format_int(self.failed)} failed ({self.share_failed})."
        if self.slowest is None or self.slowest.percentiles is None:
            return f"{said} How long they took is unknown."
        return f"{said} At worst, 19 in 20 were done within {_span(self.slowest.percentiles.p95)}."

    @property
    def as_json(self) -> str:
        """The data of the charts: lines by name, a value a step, and where they change."""
        at, asked = self.window.instants, self.window.asked
        lines: dict[str, Any] = {"at": at, "until": int(asked.until.timestamp()), **self._marks}
        lines |= self._counted_lines(at) | self._timed_lines(at) | self.depth.lines(at)
        lines |= self.usual.lines({each: self._finished_at(each) for each in at})
        lines |= {"messages": drilldown.pattern(asked), "pruned": drilldown.pruned_pattern(asked)}
        lines |= {"finished": drilldown.finished_pattern(asked)}
        return json.dumps(lines, separators=(",", ":"))

    @property
    def _marks(self) -> dict[str, int | None]:
        unread, kept = self.reach.unread_from, drilldown.kept_from()
        return {
            "so_far_from": self.reach.so_far,
            "unread_from": int(unread.timestamp()) if unread else None,
            "kept_from": int(kept.timestamp()) if kept else None,
            **self.depth.marks,
        }

    def _counted_lines(self, at: list[int]) -> dict[str, list[Any]]:
        counted = [self._counts_at(each) for each in at]
        before = [self._counts.before.get(each) for each in at]
        return {
            "succeeded": [each.succeeded if each else None for each in counted],
            "failed": [each.failed if each else None for each in counted],
            "retried": [self._retried_at(each) for each in at],
            "before": [each.finished if each else None for each in before],
            "share": [_per_cent(each) for each in counted],
            "share_before": [_per_cent(each) for each in before],
        }

    def _timed_lines(self, at: list[int]) -> dict[str, list[float | None]]:
        """Lines of durations in milliseconds, rounded as shown."""
        before = [self._timings.before.get(each) for each in at]
        spans = [self.percentiles.get(each) for each in at]
        now = {
            name: [nearest(each[place]) if each else None for each in spans]
            for place, name in enumerate(queries.Percentiles._fields)
        }
        return {**now, "p95_before": [nearest(each.percentiles.p95) if each else None for each in before]}

    @property
    def _nothing(self) -> MessageCounts:
        return queries.nothing(self.window.asked)

    def _counts_at(self, at: int) -> MessageCounts | None:
        """None if not read yet, which is not zero."""
        return self.counts.get(at) or (self._nothing if self.reach.knows(at) else None)

    def _finished_at(self, at: int) -> int | None:
        counts = self._counts_at(at)
        return counts.finished if counts else None

    def _retried_at(self, at: int) -> int | None:
        if self._retried is None or (self.forgotten_to and at < self.forgotten_to.timestamp()):
            return None
        return self._retried.get(at, 0 if self.reach.knows(at) else None)

    def _step(self, at: int) -> ChartBucket:
        instant = datetime.fromtimestamp(at, UTC)
        where = (self.window.asked, instant, self.window.step)
        long_before = self._timings.before.get(at)
        before = EarlierValue(self._counts.before.get(at), long_before.percentiles.p95 if long_before else None)
        counts = self.counts.get(at, self._nothing)
        spans, retried = self.percentiles.get(at), self._retried_at(at)
        leads = drilldown.died(*where), drilldown.finished(*where)
        usual = self.usual.bands(at, counts.finished)
        return ChartBucket(instant, counts, spans, retried, *leads, usual, before, self.reach.known(at))


def _per_cent(counts: MessageCounts | None) -> float | None:
    part = counts.share_failed if counts else None
    return None if part is None else per_cent(part)


def _span(milliseconds: float | None) -> str:
    return UNKNOWN if milliseconds is None else span(milliseconds)

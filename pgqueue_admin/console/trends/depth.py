"""Depth from samples for the choice on Trends: its queue, its endpoint's input queue, or all input queues."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from pgqueue_admin.console import components
from pgqueue_admin.console.trends.previous_week import WithPreviousWeek, both
from pgqueue_admin.console.trends.rates import RateRow, RateTable
from pgqueue_admin.console.trends.time_range import TimeRange
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting.durations import nearest
from pgqueue_admin.formatting.numbers import COUNTED, format_figure, pluralize
from pgqueue_admin.history.rollups.queries import TrendQuery
from pgqueue_admin.models import Endpoint, Queue, database_clock, depth_history
from pgqueue_admin.models.depth_history import DepthPoint
from pgqueue_admin.models.queue_database import queue_database


class DepthChart:
    def __init__(self, window: TimeRange):
        self.window = window

    @cached_property
    def _address(self) -> Address | None:
        """None if nothing with a queue is chosen, or the queue of the endpoint is unknown."""
        return _address(self.window.asked)

    @cached_property
    def queue(self) -> Queue | None:
        """None for all queues together, or for a queue that is unknown."""
        address = self._address
        return Queue.objects.filter(schema=address.schema, table=address.table).first() if address else None

    @property
    def _chosen(self) -> str:
        return self.window.asked.queue or self.window.asked.endpoint

    @cached_property
    def both(self) -> WithPreviousWeek[DepthPoint]:
        if self._chosen and not self.queue:
            return WithPreviousWeek({}, {})
        queue = self.queue.pk if self.queue else depth_history.ALL
        return both(self.window, lambda asked: depth_history.steps(queue, asked.grain, asked.since, asked.until))

    @property
    def steps(self) -> dict[int, DepthPoint]:
        return self.both.now

    @property
    def of(self) -> str:
        return str(self.queue) if self.queue else self._chosen or "all input queues together"

    @property
    def live_from(self) -> int | None:
        """Where history ends and samples that are not folded yet begin, in Unix seconds."""
        return next((at for at, depth in self.steps.items() if depth.is_live), None)

    @property
    def rows(self) -> list[RateRow]:
        """Newest first."""
        return list(reversed(self._rows.values()))

    @cached_property
    def _rows(self) -> dict[int, RateRow]:
        return {at: self._row(at, depth) for at, depth in self.steps.items()}

    def _row(self, at: int, depth: DepthPoint) -> RateRow:
        rated = min(60.0 * (depth.rated_minutes or 0), max(0.0, self._now - at))
        return RateRow(datetime.fromtimestamp(at, UTC), depth, self._before(at), self._goes_on(at), rated)

    @cached_property
    def rates(self) -> RateTable:
        return RateTable(list(self._rows.values()), self.window, sum(at < self._now for at in self.window.instants))

    @property
    def sentence(self) -> str:
        if not self.steps:
            return self._why_none
        worst, depth = max(self.steps.items(), key=lambda each: each[1].high)
        when = components.sentence_time(datetime.fromtimestamp(worst, UTC))
        most = format_figure(depth.high, depth.how or COUNTED)
        return f"At most {most} waited, in the {self.window.asked.grain} from {when}.{self._without}"

    @property
    def _without(self) -> str:
        """A note if the sum lacks queues that could not be read."""
        lacking = [depth.unread for depth in self.steps.values() if depth.unread]
        if not lacking:
            return ""
        which = pluralize(max(lacking), "queue that could not be read", "queues that could not be read")
        some = f"{len(lacking):,} of {len(self.steps):,} {self.window.asked.grain}s are without up to {which}"
        return f" {some}: more may have lain there."

    @property
    def _why_none(self) -> str:
        if self.queue and (gone := self.queue.gone_since):
            return f"No samples in this window: the queue is gone since {components.sentence_time(gone)}."
        if self.queue or not self._chosen:
            return "No samples in this window."
        if self._address and self._address.schema:
            return f"No samples: {self._address.table} in schema {self._address.schema} was never found as a queue."
        if self.window.asked.queue:
            return "No samples: this is no address of a queue here."
        return "No samples: nobody has said here which queue this endpoint receives from. Choose that queue instead."

    def lines(self, at: list[int]) -> dict[str, list[Any]]:
        """Lines of the chart by name; None for steps without samples."""
        found = [self._rows.get(each) for each in at]
        lines = {name: [line(each) if each else None for each in found] for name, line in _LINES.items()}
        return lines | {"median_before": [self._before(each) for each in at]}

    @property
    def marks(self) -> dict[str, int | None]:
        """Where the lines change, in Unix seconds."""
        so_far = next((at for at in self.window.instants if self._goes_on(at)), None)
        return {"live_from": self.live_from, "depth_so_far_from": so_far}

    def _before(self, at: int) -> int | None:
        before = self.both.before.get(at)
        return before.median if before else None

    def _goes_on(self, at: int) -> bool:
        return at + self.window.step.total_seconds() > self._now

    @cached_property
    def _now(self) -> float:
        return database_clock.now().timestamp()


_ABOUT = {"capped": ", at least", "estimate": ", about", "about-least": ", about, or more"}
_LINES: dict[str, Callable[[RateRow], Any]] = {
    "low": lambda row: row.depth.low,
    "median": lambda row: row.depth.median,
    "high": lambda row: row.depth.high,
    "in": lambda row: _rounded(row.depth.in_per_second, 6),
    "out": lambda row: _rounded(row.depth.out_per_second, 6),
    "came_in": lambda row: row.came_in,
    "went_out": lambda row: row.went_out,
    "oldest": lambda row: _as_said(row.depth.oldest_seconds),
    "unread": lambda row: row.depth.unread or 0,
    "how": lambda row: _ABOUT.get(row.depth.how or COUNTED, ""),
    "oldest_at_least": lambda row: row.depth.oldest_at_least,
}


def _rounded(figure: float | None, places: int) -> float | None:
    return None if figure is None else round(figure, places)


def _as_said(seconds: float | None) -> float | None:
    return None if seconds is None else nearest(1000 * seconds) / 1000


def _address(asked: TrendQuery) -> Address | None:
    if asked.queue:
        try:
            return queue_database().dialect.parse_address(asked.queue, queue_database().default_schema)
        except AddressUnreadable:
            return Address("", asked.queue)  # no known queue
    endpoint = Endpoint.objects.filter(name=asked.endpoint).first() if asked.endpoint else None
    return Address(endpoint.schema, endpoint.table) if endpoint else None

"""Usual ranges in each step of a window: the bands behind its lines, and their text."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

from pgqueue_admin.console.trends.time_range import TimeRange
from pgqueue_admin.formatting.anomaly import between, whole
from pgqueue_admin.formatting.durations import nearest
from pgqueue_admin.formatting.numbers import UNKNOWN, format_int, per_cent, share
from pgqueue_admin.history.rollups import baseline
from pgqueue_admin.history.rollups.baseline import Baseline, BaselineRange, BaselineSet, BaselineSubject

HOUR = 3600
_LINES: tuple[tuple[str, str, Callable[[float], float]], ...] = (
    ("usual", "messages", int), ("share", "failed", per_cent),
    ("p50", "half", nearest), ("p95", "nearly_all", nearest), ("p99", "all_but_one", nearest),
)  # fmt: skip


class BaselineRanges(NamedTuple):
    """None: too few weeks, or steps of minutes, whose usual number is unknown. ``failed``: a share of 0 to 1."""

    messages: BaselineRange | None = None
    failed: BaselineRange | None = None
    half: BaselineRange | None = None
    nearly_all: BaselineRange | None = None
    all_but_one: BaselineRange | None = None

    @property
    def spans(self) -> tuple[BaselineRange | None, ...]:
        return self.half, self.nearly_all, self.all_but_one

    @property
    def words(self) -> list[str]:
        """For the table: how many, and how long half, 19 in 20 and 99 in 100 take."""
        many = (
            f"{format_int(int(self.messages.low))} to {format_int(int(self.messages.high))}"
            if self.messages
            else UNKNOWN
        )
        return [many, *(between(*band) if band else UNKNOWN for band in self.spans)]

    @property
    def share(self) -> str:
        return f"{share(self.failed.low)} to {share(self.failed.high)}" if self.failed else UNKNOWN


class Baselines:
    def __init__(self, window: TimeRange, measure: str):
        self.window, self.measure = window, measure

    @cached_property
    def known(self) -> dict[int, BaselineSet]:
        """Baselines by hour, or by day if steps are days."""
        asked = self.window.asked
        if asked.queue and asked.endpoint:
            return {}
        grain = "day" if asked.grain == "day" else "hour"
        at = [datetime.fromtimestamp(each, UTC) for each in sorted({self._compared(at) for at in self.window.instants})]
        return baseline.of_one(BaselineSubject(asked.queue, asked.endpoint, asked.type), grain, at, self.measure)

    def bands(self, at: int, finished: int | None) -> BaselineRanges:
        """``finished``: how many finished in that step; without any there is no share."""
        known = self.known.get(self._compared(at))
        if known is None:
            return BaselineRanges()
        messages = None if self.window.asked.grain == "minute" else _band(known.messages, _of_counts)
        failed = baseline.of_share(known.failed, finished) if known.failed and finished else None
        spans = (known.half, known.nearly_all, known.all_but_one)
        return BaselineRanges(messages, failed, *(_band(each, baseline.of_span) for each in spans))

    def lines(self, finished: Mapping[int, int | None]) -> dict[str, list[float | None]]:
        """Both ends of each band, in each step of ``finished``: messages, per cent, milliseconds, rounded as shown."""
        found = [self.bands(at, number) for at, number in finished.items()]
        return {
            f"{name}_{end}": [as_said(getattr(band, end)) if (band := getattr(each, field)) else None for each in found]
            for name, field, as_said in _LINES
            for end in BaselineRange._fields
        }

    @property
    def sentence(self) -> str:
        """The number of weeks behind the range, or why there is no range."""
        weeks = [each.messages.weeks for each in self.known.values() if each.messages]
        if not weeks and self.window.asked.queue:
            return "The usual range is kept by endpoint: choose the one that receives from this queue."
        if not weeks:
            return f"The usual range is known after {baseline.LEAST_WEEKS} weeks of history of this choice."
        of = {"day": "the same day of the week", "hour": "the same hour of the week"}.get(
            self.window.asked.grain, "their hour"
        )
        least, most = min(weeks), max(weeks)
        stand = f"{least} to {most}" if least < most else str(most)
        return f"Shaded: the usual range, from {of} in the {stand} weeks before."

    def _compared(self, at: int) -> int:
        return at // HOUR * HOUR if self.window.asked.grain == "minute" else at


def _of_counts(known: Baseline) -> BaselineRange:
    return BaselineRange(*whole(*baseline.of_messages(known)))


def _band(known: Baseline | None, of: Callable[[Baseline], BaselineRange]) -> BaselineRange | None:
    return of(known) if known else None

"""Messages in and out, and the age of the oldest, beside depth: from samples, so never exact."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pgqueue_admin.console import components
from pgqueue_admin.console.trends.time_range import TimeRange
from pgqueue_admin.formatting.durations import measured
from pgqueue_admin.formatting.numbers import AT_LEAST, UNKNOWN, about, format_figure
from pgqueue_admin.models.depth_history import DepthPoint

_BY_SAMPLES = "estimate"


@dataclass(frozen=True, slots=True)
class RateRow:
    at: datetime
    depth: DepthPoint
    before: int | None  # the median of the same step a week earlier
    is_so_far: bool
    seconds: float  # for which its rates are known; of the present step, so far

    @property
    def came_in(self) -> int | None:
        return self._messages(self.depth.in_per_second)

    @property
    def went_out(self) -> int | None:
        return self._messages(self.depth.out_per_second)

    @property
    def is_at_least(self) -> bool:
        return bool(self.depth.oldest_at_least)

    @property
    def oldest(self) -> str:
        """``≈ 3 s``, ``at least 2 min``, ``–``: none was ready, or its arrival was not seen."""
        seconds, how = self.depth.oldest_seconds, AT_LEAST if self.is_at_least else _BY_SAMPLES
        if seconds is None:
            return UNKNOWN
        said = measured(1000 * seconds)
        return said if said.startswith("<") else about(how) + said

    def _messages(self, per_second: float | None) -> int | None:
        return None if per_second is None else round(per_second * self.seconds)


@dataclass(frozen=True, slots=True)
class RateTable:
    """The steps of a window, oldest first, as rates and ages: the charts in words, for people who do not see them."""

    rows: Sequence[RateRow]
    window: TimeRange
    begun: int  # steps of the window that have begun, those without a sample too

    @property
    def are_known(self) -> bool:
        return any(None not in (each.came_in, each.went_out) for each in self.rows)

    @property
    def are_ages_known(self) -> bool:
        return any(each.depth.oldest_seconds is not None for each in self.rows)

    @property
    def sentence(self) -> str:
        entered = [each.came_in for each in self.rows if each.came_in is not None]
        left = [each.went_out for each in self.rows if each.went_out is not None]
        if not entered and not left:
            return "How many messages came in and went out is not known."
        said = f"{_told(entered, 'messages came in')}, {_told(left, 'went out')}."
        said = said[0].upper() + said[1:]
        known = max(len(entered), len(left))
        if known == self.begun:
            return said
        return f"{said} Known for {known:,} of {self.begun:,} {self.window.asked.grain}s only."

    @property
    def age_sentence(self) -> str:
        waited = [each for each in self.rows if each.depth.oldest_seconds is not None]
        if not waited:
            return "How long a message waited is not known: samples saw none ready, or not since when."
        worst = max(waited, key=lambda each: each.depth.oldest_seconds or 0.0)
        grain, when = self.window.asked.grain, components.sentence_time(worst.at)
        return f"The oldest ready message waited {worst.oldest}, in the {grain} from {when}."


def _told(numbers: list[int], what: str) -> str:
    return f"{format_figure(sum(numbers), _BY_SAMPLES)} {what}" if numbers else f"how many {what} is not known"

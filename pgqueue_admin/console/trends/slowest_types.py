"""The slowest message types of a window, compared with an earlier one."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from pgqueue_admin.console.trends.coverage import Coverage
from pgqueue_admin.console.trends.previous_week import WEEK
from pgqueue_admin.formatting.anomaly import span
from pgqueue_admin.formatting.numbers import NBSP, UNKNOWN, pluralize
from pgqueue_admin.history.rollups import queries, retention

_NOISE = 0.02  # both sides are within one per cent
_CLOCK_MS = 1  # shorter times are known only to be shorter than that
_NEARLY_ALL = -0.99  # larger decreases are shown as this one: no decrease is 100 %


@dataclass(frozen=True, slots=True)
class SlowTypeRow:
    """``then_is_known``: the earlier window exists and is read, so nothing found in it means none."""

    slow: queries.SlowMessage
    then_is_known: bool

    @property
    def spans(self) -> list[str]:
        return [
            span(self.slow.p50),
            span(self.slow.p95),
            UNKNOWN if self.slow.before is None else span(self.slow.before),
        ]

    @property
    def change(self) -> str:
        """The change of the time within which 19 in 20 were done (p95)."""
        if not self.slow.before:
            return "none then" if self.slow.before is None and self.then_is_known else UNKNOWN
        by = max(self.slow.p95, _CLOCK_MS) / self.slow.before - 1
        if abs(by) <= _NOISE:
            return "as then"
        if by >= 1:
            return f"{by + 1:.1f} times as long"
        if by < _NEARLY_ALL or not self.slow.p95:
            return f"<{NBSP}−{int(-100 * max(by, _NEARLY_ALL))}{NBSP}%"
        return f"{by:+.0%}".replace("-", "−").replace("%", f"{NBSP}%")


class SlowestTypes:
    def __init__(self, reach: Coverage, measure: str):
        self._reach, self._asked, self._measure = reach, reach.window.asked, measure

    @property
    def earlier(self) -> timedelta:
        """Whole weeks, so that hours of the week match; at least as long as the window."""
        return -(-(self._asked.until - self._asked.since) // WEEK) * WEEK

    @property
    def compared(self) -> str:
        return f"{pluralize(self.earlier // WEEK, 'week')} before"

    @cached_property
    def rows(self) -> list[SlowTypeRow]:
        found = queries.slowest(self._asked, self._read_to, self.earlier, self._measure)
        return [SlowTypeRow(each, self._then_is_known) for each in found]

    @cached_property
    def _then_is_known(self) -> bool:
        """Whether the earlier window is kept in steps as fine, lies within history, and is read."""
        since, until = self._asked.since - self.earlier, self._asked.until - self.earlier
        is_read = self._reach.is_whole(int(since.timestamp()), int(until.timestamp()))
        return is_read and retention.reaches(self._asked.grain, since)

    @property
    def _read_to(self) -> datetime:
        """Later messages are not read from every table, here as in the charts."""
        return self._reach.unread_from or self._asked.until

"""A queue's samples in even steps, for the charts and their table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from pgqueue_admin.formatting import times
from pgqueue_admin.formatting.numbers import COUNTED, UNKNOWN, format_figure, format_int, rate
from pgqueue_admin.models import database_clock, samples

# window: its length and its step, which holds two samples or more: a gap in the chart is a gap in the samples
WINDOWS = {
    "15m": (timedelta(minutes=15), 20),
    "1h": (timedelta(hours=1), 30),
    "6h": (timedelta(hours=6), 180),
    "24h": (timedelta(hours=24), 720),
    "7d": (timedelta(days=7), 5040),
}
WORDS = {"15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h", "7d": "7 d"}
NAMES = ("ready", "in_flight", "delayed", "expired", "in", "out", "dead")
TABLE_ROWS = 24


@dataclass(frozen=True, slots=True)
class DepthSeries:
    """Aligned lists: a time and seven figures a step; None without a sample."""

    window: str
    step: int
    at: list[int]
    values: dict[str, list[float | None]]
    how: list[str | None]  # how the depth is known

    def as_json(self) -> dict[str, Any]:
        return {"step": self.step, "at": self.at, **self.values}

    @property
    def sentence(self) -> str:
        """The chart in words, for people who do not see it."""
        ready = self._known()
        if len(ready) < 2:
            return "Not enough samples yet to tell a shape."
        first, last = ready[0], ready[-1]
        top = max(ready, key=lambda place: self.values["ready"][place] or 0)
        said = (
            f"Ready messages, {_clock(self.at[first])} to {_clock(self.at[last])}: from {self._ready(first)} "
            f"to {self._ready(last)}, at most {self._ready(top)} at {_clock(self.at[top])}."
        )
        delayed = [value for value in self.values["delayed"] if value is not None]
        if not delayed or not max(delayed):
            return said
        return f"{said} Delayed between {format_int(int(min(delayed)))} and {format_int(int(max(delayed)))}."

    def _known(self) -> list[int]:
        """The places of steps with a sample."""
        return [place for place, value in enumerate(self.values["ready"]) if value is not None]

    def _ready(self, place: int) -> str:
        return format_figure(int(self.values["ready"][place] or 0), self.how[place] or COUNTED)

    @property
    def rate_sentence(self) -> str:
        entering, leaving = ([v for v in self.values[name] if v is not None] for name in ("in", "out"))
        if not entering or not leaving:
            return "Rates need two samples."
        return f"In between {_range(entering)}, out between {_range(leaving)}."

    @property
    def table(self) -> list[tuple[datetime, SafeString]]:
        """Every nth step and its cells, newest last."""
        known = self._known()
        chosen = known[:: len(known) // TABLE_ROWS + 1]
        return [(_instant(self.at[place]), self._cells(place)) for place in chosen]

    def _cells(self, place: int) -> SafeString:
        said = [_number(self.values[name][place]) for name in NAMES]
        said[0] = self._ready(place)
        return mark_safe("".join(f'<td class="num">{each}</td>' for each in said))


def load(queue_id: int, window: str, now: datetime) -> DepthSeries:
    length, step = WINDOWS[window]
    first = int((now - length).timestamp()) // step
    count = int(length.total_seconds()) // step + 1
    found = samples.steps(queue_id, now - length - timedelta(seconds=step), step)
    at = [(first + place) * step for place in range(count)]
    rows = [found.get(first + place, _NOTHING) for place in range(count)]
    *figures, how = map(list, zip(*rows, strict=True))
    values = dict(zip(NAMES, figures, strict=True))
    return DepthSeries(window, step, at, {**values, "dead": _deaths(values["dead"])}, how)


_NOTHING = (None,) * (len(NAMES) + 1)


def _deaths(lying: Sequence[float | None]) -> list[float | None]:
    """Increase of the dead since the step before; a decrease is retries and discards, so it counts as 0."""
    died: list[float | None] = []
    last: float | None = None
    for value in lying:
        died.append(None if value is None else max(0, value - last) if last is not None else 0)
        last = value if value is not None else last
    return died


def _instant(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _number(value: float | None) -> str:
    """The number with one decimal, if it has any."""
    return UNKNOWN if value is None else f"{value:,.1f}".removesuffix(".0")


def _clock(at: int) -> str:
    return times.short(_instant(at), database_clock.now(), timezone.get_current_timezone())


def _range(values: Sequence[float]) -> str:
    return f"{rate(min(values))} and {rate(max(values))}"

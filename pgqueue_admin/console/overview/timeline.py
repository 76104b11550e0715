"""Timeline: one lane per queue with a warning in the window, and one of the changes before."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from pgqueue_admin.console.overview import activity
from pgqueue_admin.console.overview.needs_attention import address
from pgqueue_admin.formatting import names, times
from pgqueue_admin.models import Alert

WINDOWS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "24h": timedelta(hours=24)}
WORDS = {"1h": "1 h", "6h": "6 h", "24h": "24 h"}
MOST_LANES = 6
LANE_PX = 21
APART = 16.0  # percent between two labels


@dataclass(frozen=True, slots=True)
class TimelineBar:
    x: float
    width: float
    severity: str


@dataclass(frozen=True, slots=True)
class TimelineLane:
    name: str
    bars: list[TimelineBar]
    said: str


@dataclass(frozen=True, slots=True)
class TimelineMark:
    x: float
    change: activity.RecentChange
    label: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Timeline:
    window: str
    start: datetime
    end: datetime
    lanes: list[TimelineLane]
    marks: list[TimelineMark]
    more: int

    @property
    def up(self) -> int:
        """How far a mark's line reaches up through the lanes."""
        return -(len(self.lanes) * LANE_PX + 2)

    @property
    def ticks(self) -> list[tuple[int, str, str]]:
        step = (self.end - self.start) / 4
        zone = timezone.get_current_timezone()
        at = [times.short(self.start + step * quarter, self.end, zone) for quarter in range(4)]
        return [(0, "start", at[0]), *((25 * q, "middle", at[q]) for q in (1, 2, 3)), (100, "end", "now")]

    @property
    def windows(self) -> list[tuple[str, str]]:
        return list(WORDS.items())

    @property
    def listed(self) -> list[activity.RecentChange]:
        return activity.folded(mark.change for mark in self.marks)

    @property
    def said(self) -> str:
        return "; ".join(f"{change.who} {change.did}" for change in self.listed) or "no change"


def draw(window: str, now: datetime, open_alerts: Iterable[Alert], latest: Iterable[activity.RecentChange]) -> Timeline:
    """Draw open warnings, which the page has read already, and resolved ones."""
    window = window if window in WINDOWS else "1h"
    start = now - WINDOWS[window]
    by_queue: dict[str, list[Alert]] = {}
    for alert in sorted([*open_alerts, *Alert.objects.filter(resolved_at__gt=start)], key=lambda each: each.opened_at):
        if alert.queue:
            by_queue.setdefault(alert.queue, []).append(alert)
    worst = sorted(by_queue.items(), key=lambda item: (not any(a.severity == "critical" for a in item[1]), item[0]))
    lanes = [_lane(where, group, start, now) for where, group in worst[:MOST_LANES]]
    return Timeline(window, start, now, lanes, _marks(latest, start, now), len(worst) - len(lanes))


def _lane(where: str, alerts: Iterable[Alert], start: datetime, end: datetime) -> TimelineLane:
    # critical is drawn last, over the warning that came before it
    ordered = sorted(alerts, key=lambda alert: alert.severity == "critical")
    bars = [_bar(alert, start, end) for alert in ordered]
    found = address(where)
    name = found.table if found else where
    return TimelineLane(name, bars, f"{name}: {_spoken(ordered, end)}")


def _spoken(alerts: Iterable[Alert], end: datetime) -> str:
    zone = timezone.get_current_timezone()
    spans = [
        f"{alert.severity} from {times.short(alert.opened_at, end, zone)}"
        + (f" to {times.short(alert.resolved_at, end, zone)}" if alert.resolved_at else " until now")
        for alert in alerts
    ]
    return names.listed(spans, 4)


def _bar(alert: Alert, start: datetime, end: datetime) -> TimelineBar:
    left, right = _percent(alert.opened_at, start, end), _percent(alert.resolved_at or end, start, end)
    return TimelineBar(round(left, 1), round(max(right - left, 0.6), 1), alert.severity)


def _percent(instant: datetime, start: datetime, end: datetime) -> float:
    return min(max(100 * (instant - start) / (end - start), 0.0), 100.0)


def _marks(found: Iterable[activity.RecentChange], start: datetime, end: datetime) -> list[TimelineMark]:
    marks: list[TimelineMark] = []
    last = -100.0
    for change in sorted((each for each in found if each.at >= start), key=lambda each: each.at):
        x = round(_percent(change.at, start, end), 1)
        label = change.short if x - last >= APART else ""
        last = x if label else last
        anchor = "start" if x < 8 else "end" if x > 92 else "middle"
        marks.append(TimelineMark(x, change, label, anchor))
    return marks

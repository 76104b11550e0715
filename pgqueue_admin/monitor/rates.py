"""Messages per second in and out of a queue, from two looks at it."""

from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from pgqueue_admin.monitor.queue_depth import QueueDepth

WINDOW_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class QueueRates:
    """None: needs two samples, or cannot be known."""

    in_per_second: float | None = None
    out_per_second: float | None = None


class RateSample(NamedTuple):
    at: datetime
    depth: QueueDepth
    left: float | None  # since the look before


class RateWindow:
    """The looks of the last half minute; the rates are those between the oldest of them and the newest."""

    def __init__(self) -> None:
        self._looks: deque[RateSample] = deque()

    def add(self, at: datetime, depth: QueueDepth) -> QueueRates:
        """In is how many numbers were given, rolled-back inserts included; out is in minus what the queue grew by.

        The table's own statistics would not do: they count receives that were rolled back.
        """
        if self._looks and went_back(self._looks[-1].depth.sent_total, depth.sent_total):
            self._looks.clear()
        while len(self._looks) > 1 and (at - self._looks[0].at).total_seconds() > WINDOW_SECONDS:
            self._looks.popleft()
        self._looks.append(RateSample(at, depth, departures(self._looks[-1].depth, depth) if self._looks else 0))
        seconds = (at - self._looks[0].at).total_seconds()
        if seconds <= 0:
            return QueueRates()
        counts = arrivals(self._looks[0].depth, depth), self._left()
        return QueueRates(*(None if count is None else max(0, count) / seconds for count in counts))

    def _left(self) -> float | None:
        """In the whole window: of each look it is known how its rows lay, and only until the next."""
        counts = [look.left for look in self._looks][1:]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None


def arrivals(before: QueueDepth, after: QueueDepth) -> float | None:
    if after.step is None:
        return None
    if before.sent_total is not None or after.sent_total is not None:
        return ((after.sent_total or 0) - (before.sent_total or 0)) / after.step
    if after.tail_seq is None or before.tail_seq is None:
        return None
    return (after.tail_seq - before.tail_seq) / after.step


def departures(before: QueueDepth, after: QueueDepth) -> float | None:
    """From counts; where they are not counted, about how many rows the head moved over."""
    arrived = arrivals(before, after)
    if before.rows is not None and after.rows is not None:
        return None if arrived is None else arrived - (after.rows - before.rows)
    if before.head is None or after.head is None:
        return None
    return before.below(after.head)


def someone_received(before: QueueDepth, after: QueueDepth) -> bool:
    """Only what rows prove: the sequence runs ahead of those that are not committed yet, or never will be.

    Of a queue that is empty both times it is all there is: received in between, open or undone. That puts off no
    warning: what is committed later comes later.
    """
    if not after.to_receive:
        return before.to_receive > 0 or (arrivals(before, after) or 0) > 0
    return after.moved_on(before)


def went_back(before: int | None, after: int | None) -> bool:
    """Whether the sequence did: emptied with a restart, or another table under the same name."""
    return (after or 0) < (before or 0)

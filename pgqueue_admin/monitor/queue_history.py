"""The sampler's memory of a queue between samples."""

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pgqueue_admin.monitor.depth import LATE
from pgqueue_admin.monitor.depth_result import QueueDepth

# Arrival times of messages: the tables do not store them, but the growth of the tail shows them.
_MOST = 4096


class Arrivals:
    """A seq had arrived when the tail was first seen at or past it: precise to one sample."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._times: list[datetime] = []

    def note(self, tail_seq: int, at: datetime) -> None:
        """Only growth counts: a tail that is received removes nothing. The first note is the start of observation."""
        if not self._seqs or tail_seq > self._seqs[-1]:
            self._seqs.append(tail_seq)
            self._times.append(at)
        if len(self._seqs) > _MOST:
            self._thin()

    def of(self, seq: int) -> datetime | None:
        """None for messages present before observation began, or not seen yet."""
        place = bisect_left(self._seqs, seq)
        return self._times[place] if 0 < place < len(self._seqs) else None

    def before(self, seq: int) -> datetime | None:
        """The time before which it had arrived; None if ``of`` knows the time, or it was not seen yet."""
        return self._times[0] if self._seqs and seq <= self._seqs[0] else None

    def forget_below(self, seq: int) -> None:
        """Seqs below the head are never queried again; the last note below it stays as the start."""
        place = bisect_left(self._seqs, seq)
        if place > _MOST // 8:
            del self._seqs[: place - 1], self._times[: place - 1]

    def _thin(self) -> None:
        """Drop every second note of the older half: those seqs then seem to have arrived slightly later."""
        half = len(self._seqs) // 2
        del self._seqs[1:half:2], self._times[1:half:2]


# Messages per second in and out of a queue, from two samples.
WINDOW_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class QueueRates:
    """None: needs two samples, or unknown."""

    in_per_second: float | None = None
    out_per_second: float | None = None


class RateSample(NamedTuple):
    at: datetime
    depth: QueueDepth
    left: float | None  # since the previous sample


class RateWindow:
    """The samples of the last half minute; rates are between the oldest and the newest."""

    def __init__(self) -> None:
        self._looks: deque[RateSample] = deque()

    def add(self, at: datetime, depth: QueueDepth) -> QueueRates:
        """In: numbers drawn, including rolled-back inserts. Out: in minus the queue's growth.

        The table's own statistics are unsuitable: they count rolled-back receives.
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
        """In the whole window: the marks of each sample are valid only until the next."""
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
    """From counts; if not counted, about how many rows the head passed."""
    arrived = arrivals(before, after)
    if before.rows is not None and after.rows is not None:
        return None if arrived is None else arrived - (after.rows - before.rows)
    if before.head is None or after.head is None:
        return None
    return before.below(after.head)


def someone_received(before: QueueDepth, after: QueueDepth) -> bool:
    """Only what rows prove: the sequence counts uncommitted and rolled-back inserts, too.

    For a queue empty at both samples the sequence is the only evidence: received in between, uncommitted or rolled
    back. That delays no warning: what commits later counts later.
    """
    if not after.to_receive:
        return before.to_receive > 0 or (arrivals(before, after) or 0) > 0
    return after.moved_on(before)


def went_back(before: int | None, after: int | None) -> bool:
    """Whether the sequence went back: restarted, or another table has the name."""
    return (after or 0) < (before or 0)


BLIND_AFTER = timedelta(seconds=10)  # after a longer gap, the next sample cannot date what arrived meanwhile
SLOW = 0.02  # seconds; a slower sample scans dead rows before the head
_SHARE = 50  # scanning below the low water may take this fraction (1/50) of the time


@dataclass(frozen=True, slots=True)
class RememberedDepth:
    """What the previous sampler knew of a queue."""

    ready_seq: int | None = None
    head_seq: int | None = None
    oldest_at: datetime | None = None
    oldest_how: str = "estimate"
    changed_at: datetime | None = None
    last_departure_at: datetime | None = None
    sent_total: int | None = None

    def until(self, at: datetime) -> "RememberedDepth":
        """Clamp to a clock that has stepped back: later times become now, and ages become lower bounds."""
        how = "least" if self.oldest_at and self.oldest_at > at else self.oldest_how
        changed_at, last_departure_at, oldest_at = (
            each and min(each, at) for each in (self.changed_at, self.last_departure_at, self.oldest_at)
        )
        return replace(
            self, oldest_at=oldest_at, oldest_how=how, changed_at=changed_at, last_departure_at=last_departure_at
        )


class QueueHistory:
    """One queue's past: arrivals, departures, and the low-water mark where scans may begin."""

    def __init__(self, remembered: RememberedDepth | None = None, blind_after: timedelta = BLIND_AFTER) -> None:
        self._blind_after = blind_after
        self.remembered = remembered or RememberedDepth()
        self.last: QueueDepth | None = None
        self._noted_at = datetime.min.replace(tzinfo=UTC)
        self.rates = QueueRates()
        self.changed_at = self.remembered.changed_at
        self.last_departure_at = self.remembered.last_departure_at
        self.low_water: int | None = None
        self.low_water_checked_at: datetime | None = None  # when all rows from the lowest seq on were last scanned
        self._look_again_at: datetime | None = None
        self._arrivals, self._window = Arrivals(), RateWindow()
        self._sent: tuple[int, datetime | None] | None = None

    def note(self, at: datetime, depth: QueueDepth) -> None:
        """Record a new sample."""
        self._note_water(at, depth)  # first: the later resets forget where this scan began
        stepped_back = at < self._noted_at
        if stepped_back:
            self._look_again_at = None
        if went_back((self.last or self.remembered).sent_total, depth.sent_total):
            self.begin_anew()  # before comparing: an emptied table would look like receives
        left = self._someone_received(depth)
        self.changed_at = at if self.last is None or self.last.depth != depth.depth else self.changed_at
        self.last_departure_at = at if left else self.last_departure_at
        if self.last and (stepped_back or at - self._noted_at > self._blind_after):
            self._begin(self._known(self.last))  # after comparing, which is valid after any gap
        if self.last is None:
            self._forget_the_future(at)
        # last: this sample does not date what arrived during a gap, or reuses an earlier number
        self._arrivals.note(max(depth.tail_seq or 0, 0 if self.last else depth.sent_total or 0), at)
        self._arrivals.forget_below(depth.head_seq or 0)
        self.rates = self._window.add(at, depth)
        self.last, self._noted_at = depth, at

    def begin_anew(self) -> None:
        """Its numbers restart: what is known of a seq is not true of its new message."""
        self._begin(RememberedDepth())
        self._sent = self.low_water = self._look_again_at = None

    def oldest(self) -> tuple[datetime | None, str]:
        """When the first ready message arrived, and how that is known: exact, estimate, or at the latest (least)."""
        if self.last and self.last.oldest_at:
            return self.last.oldest_at, self.last.oldest_how
        seq = self.last.ready_seq if self.last else None
        if seq is None:
            return None, "exact"
        if arrived := self._arrivals.of(seq):
            return arrived, "exact"
        if seq == self.remembered.ready_seq and self.remembered.oldest_at:
            return self.remembered.oldest_at, self.remembered.oldest_how
        if self._sent is None or self._sent[0] != seq:
            return None, "estimate"
        return (self._sent[1], "estimate") if self._sent[1] else (self._arrivals.before(seq), "least")

    def wants_sent_at(self) -> int | None:
        """The seq whose TimeSent must substitute for its arrival time, if not read yet."""
        seq = self.last.ready_seq if self.last else None
        known = seq is None or self.oldest()[0] is not None or (self._sent is not None and self._sent[0] == seq)
        return None if known else seq

    def note_sent_at(self, seq: int, sent_at: datetime | None) -> None:
        self._sent = seq, sent_at

    def begin_at(self, at: datetime) -> int | None:
        """The seq to scan from now. None: from the lowest."""
        return None if self._look_again_at is None or at >= self._look_again_at else self.low_water

    def _begin(self, remembered: RememberedDepth) -> None:
        """Start like a new sampler, with the previous one's knowledge."""
        self.remembered, self.last = remembered, None
        self._arrivals, self._window = Arrivals(), RateWindow()

    def _forget_the_future(self, at: datetime) -> None:
        self.remembered = self.remembered.until(at)
        instants = self.changed_at, self.last_departure_at, self.low_water_checked_at
        self.changed_at, self.last_departure_at, self.low_water_checked_at = (
            each and min(each, at) for each in instants
        )

    def _known(self, last: QueueDepth) -> RememberedDepth:
        return RememberedDepth(
            last.ready_seq, last.head_seq, *self.oldest(), self.changed_at, self.last_departure_at, last.sent_total
        )

    def _note_water(self, at: datetime, depth: QueueDepth) -> None:
        whole = self.begin_at(at) is None
        if whole:
            self.low_water_checked_at = at
            slow = depth.seconds > SLOW
            self._look_again_at = at + timedelta(seconds=max(10.0, _SHARE * depth.seconds)) if slow else None
        head = depth.head_seq if depth.head_seq is not None else depth.sent_total
        self.low_water = None if head is None else head - LATE

    def _someone_received(self, depth: QueueDepth) -> bool:
        if self.last is None:
            return self.remembered.head_seq not in (None, depth.head_seq)
        return someone_received(self.last, depth)

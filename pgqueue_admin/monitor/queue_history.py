"""What the sampler remembers of a queue between two samples."""

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pgqueue_admin.monitor.depth import LATE
from pgqueue_admin.monitor.depth_result import QueueDepth

# When messages arrived. The tables do not say, but whoever watches the tail grow knows.
_MOST = 4096


class Arrivals:
    """A seq had arrived when the tail was first seen at or past it: exact to one sample."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._times: list[datetime] = []

    def note(self, tail_seq: int, at: datetime) -> None:
        """Only growth counts: a tail that left takes nothing back. The first note is where watching began."""
        if not self._seqs or tail_seq > self._seqs[-1]:
            self._seqs.append(tail_seq)
            self._times.append(at)
        if len(self._seqs) > _MOST:
            self._thin()

    def of(self, seq: int) -> datetime | None:
        """None for what was there before watching began, and for what was not seen yet."""
        place = bisect_left(self._seqs, seq)
        return self._times[place] if 0 < place < len(self._seqs) else None

    def before(self, seq: int) -> datetime | None:
        """The instant before which it had arrived; None where ``of`` knows when, and for what was not seen yet."""
        return self._times[0] if self._seqs and seq <= self._seqs[0] else None

    def forget_below(self, seq: int) -> None:
        """What is before the head is never asked for again; the last note below it stays as the beginning."""
        place = bisect_left(self._seqs, seq)
        if place > _MOST // 8:
            del self._seqs[: place - 1], self._times[: place - 1]

    def _thin(self) -> None:
        """Drop every second note of the older half: a seq there then seems to have arrived a little later."""
        half = len(self._seqs) // 2
        del self._seqs[1:half:2], self._times[1:half:2]


# Messages per second in and out of a queue, from two looks at it.
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


BLIND_AFTER = timedelta(seconds=10)  # without a look, what came meanwhile cannot be dated by the next one
SLOW = 0.02  # seconds; a look that takes longer wades through dead rows before the head
_SHARE = 50  # looking below the low water may take one in so many seconds


@dataclass(frozen=True, slots=True)
class RememberedDepth:
    """What an earlier sampler knew of a queue."""

    ready_seq: int | None = None
    head_seq: int | None = None
    oldest_at: datetime | None = None
    oldest_how: str = "estimate"
    changed_at: datetime | None = None
    last_departure_at: datetime | None = None
    sent_total: int | None = None

    def until(self, at: datetime) -> "RememberedDepth":
        """By a clock that stepped back since: what it says was later was before now, and nobody can say how long."""
        how = "least" if self.oldest_at and self.oldest_at > at else self.oldest_how
        changed_at, last_departure_at, oldest_at = (
            each and min(each, at) for each in (self.changed_at, self.last_departure_at, self.oldest_at)
        )
        return replace(
            self, oldest_at=oldest_at, oldest_how=how, changed_at=changed_at, last_departure_at=last_departure_at
        )


class QueueHistory:
    """One queue's past: what arrived when, what left, and where looking for its head may begin."""

    def __init__(self, remembered: RememberedDepth | None = None, blind_after: timedelta = BLIND_AFTER) -> None:
        self._blind_after = blind_after
        self.remembered = remembered or RememberedDepth()
        self.last: QueueDepth | None = None
        self._noted_at = datetime.min.replace(tzinfo=UTC)
        self.rates = QueueRates()
        self.changed_at = self.remembered.changed_at
        self.last_departure_at = self.remembered.last_departure_at
        self.low_water: int | None = None
        self.low_water_checked_at: datetime | None = (
            None  # when everything down to the lowest seq was last looked through
        )
        self._look_again_at: datetime | None = None
        self._arrivals, self._window = Arrivals(), RateWindow()
        self._sent: tuple[int, datetime | None] | None = None

    def note(self, at: datetime, depth: QueueDepth) -> None:
        """Take in a new look at the queue."""
        self._note_water(at, depth)  # first: where this look began is forgotten with the rest
        stepped_back = at < self._noted_at
        if stepped_back:
            self._look_again_at = None
        if went_back((self.last or self.remembered).sent_total, depth.sent_total):
            self.begin_anew()  # before comparing: a table that was emptied would look received from
        left = self._someone_received(depth)
        self.changed_at = at if self.last is None or self.last.depth != depth.depth else self.changed_at
        self.last_departure_at = at if left else self.last_departure_at
        if self.last and (stepped_back or at - self._noted_at > self._blind_after):
            self._begin(self._known(self.last))  # after comparing, which holds however long nobody looked
        if self.last is None:
            self._forget_the_future(at)
        # last, since what came while nobody looked, or has a former one's number, is not dated by this look
        self._arrivals.note(max(depth.tail_seq or 0, 0 if self.last else depth.sent_total or 0), at)
        self._arrivals.forget_below(depth.head_seq or 0)
        self.rates = self._window.add(at, depth)
        self.last, self._noted_at = depth, at

    def begin_anew(self) -> None:
        """Its numbers begin again: nothing that is known of a seq is true of the one that has its number now."""
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
        """The seq whose TimeSent must stand in for its arrival, if that is not read yet."""
        seq = self.last.ready_seq if self.last else None
        known = seq is None or self.oldest()[0] is not None or (self._sent is not None and self._sent[0] == seq)
        return None if known else seq

    def note_sent_at(self, seq: int, sent_at: datetime | None) -> None:
        self._sent = seq, sent_at

    def begin_at(self, at: datetime) -> int | None:
        """The seq to look from now. None: from the very lowest."""
        return None if self._look_again_at is None or at >= self._look_again_at else self.low_water

    def _begin(self, remembered: RememberedDepth) -> None:
        """As a sampler that starts, with what the one before knew."""
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

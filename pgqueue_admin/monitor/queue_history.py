"""What the sampler remembers of one queue from look to look."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pgqueue_admin.monitor.arrivals import Arrivals
from pgqueue_admin.monitor.depth import LATE
from pgqueue_admin.monitor.queue_depth import QueueDepth
from pgqueue_admin.monitor.rates import QueueRates, RateWindow, someone_received, went_back

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
    left_at: datetime | None = None
    sent_total: int | None = None

    def until(self, at: datetime) -> "RememberedDepth":
        """By a clock that stepped back since: what it says was later was before now, and nobody can say how long."""
        how = "least" if self.oldest_at and self.oldest_at > at else self.oldest_how
        changed_at, left_at, oldest_at = (
            each and min(each, at) for each in (self.changed_at, self.left_at, self.oldest_at)
        )
        return replace(self, oldest_at=oldest_at, oldest_how=how, changed_at=changed_at, left_at=left_at)


class QueueHistory:
    """One queue's past: what arrived when, what left, and where looking for its head may begin."""

    def __init__(self, remembered: RememberedDepth | None = None, blind_after: timedelta = BLIND_AFTER) -> None:
        self._blind_after = blind_after
        self.remembered = remembered or RememberedDepth()
        self.last: QueueDepth | None = None
        self._noted_at = datetime.min.replace(tzinfo=UTC)
        self.rates = QueueRates()
        self.changed_at = self.remembered.changed_at
        self.left_at = self.remembered.left_at
        self.low_water: int | None = None
        self.lowest_at: datetime | None = None  # when everything down to the lowest seq was last looked through
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
        self.left_at = at if left else self.left_at
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
        instants = self.changed_at, self.left_at, self.lowest_at
        self.changed_at, self.left_at, self.lowest_at = (each and min(each, at) for each in instants)

    def _known(self, last: QueueDepth) -> RememberedDepth:
        return RememberedDepth(
            last.ready_seq, last.head_seq, *self.oldest(), self.changed_at, self.left_at, last.sent_total
        )

    def _note_water(self, at: datetime, depth: QueueDepth) -> None:
        whole = self.begin_at(at) is None
        if whole:
            self.lowest_at = at
            slow = depth.seconds > SLOW
            self._look_again_at = at + timedelta(seconds=max(10.0, _SHARE * depth.seconds)) if slow else None
        head = depth.head_seq if depth.head_seq is not None else depth.sent_total
        self.low_water = None if head is None else head - LATE

    def _someone_received(self, depth: QueueDepth) -> bool:
        if self.last is None:
            return self.remembered.head_seq not in (None, depth.head_seq)
        return someone_received(self.last, depth)

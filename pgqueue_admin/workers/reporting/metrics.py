"""Counters and durations of one endpoint process: fills the engine's Observer port."""

import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pgqueue_admin.transport.failure import message_of, type_name
from pgqueue_admin.transport.ports import HeldMessage
from pgqueue_admin.workers.reporting.in_flight_file import InFlightFile
from pgqueue_admin.workers.reporting.throughput import BusyTime, RateCounter

WINDOW = 60.0  # seconds that percentiles cover
_MOST_TIMES = 2_000
MOST_TYPES = 500  # senders choose the names of types: beyond this, all others share one
OTHER_TYPES = "(other types)"


@dataclass
class ProcessMetrics:
    """Totals since the process started. T3: expired messages are counted, with the time of the last."""

    received: int = 0
    received_at: datetime | None = None
    handled: int = 0
    failed: int = 0
    retried: int = 0
    expired: int = 0
    last_expired_at: datetime | None = None
    last_error: str = ""
    last_error_at: datetime | None = None


class Counters:
    """Implements transport.ports.Observer; called from many threads."""

    def __init__(self, hands: InFlightFile):
        self.figures = ProcessMetrics()
        self._hands = hands
        self._lock = threading.Lock()
        self._busy = BusyTime()
        self._ttbrs: dict[str, timedelta] = {}
        self._lost: Counter[str] = Counter()
        self._duplicates = 0
        self._pace = RateCounter(time.monotonic())
        self._handled, self._critical = RecentDurations(), RecentDurations()

    # the port

    def received(self, message: HeldMessage) -> None:
        with self._lock:
            self.figures.received += 1
            self.figures.received_at = datetime.now(UTC)

    def handled(self, seconds: float) -> None:
        with self._lock:
            self.figures.handled += 1
            now = time.monotonic()
            self._pace.add(now)
            self._handled.add(seconds, now)

    def failed(self, error: BaseException) -> None:
        with self._lock:
            self.figures.failed += 1
        self.went_wrong(f"{type_name(type(error))}: {message_of(error)}"[:2_000])

    def retried(self) -> None:
        with self._lock:
            self.figures.retried += 1

    def expired(self, type: str) -> None:
        with self._lock:
            self.figures.expired += 1
            self.figures.last_expired_at = datetime.now(UTC)
            self._lost[kept_as(type, self._lost)] += 1

    def duplicate(self) -> None:
        with self._lock:
            self._duplicates += 1

    def in_flight(self, slot: int, message: HeldMessage | None) -> None:
        if message is None:
            self._busy.put_down(slot)
            self._hands.empty(slot)
        else:
            self._busy.take(slot)
            self._hands.take(slot, message)
            self._note_ttbr(message.type, message.time_to_be_received)

    def critical_time(self, seconds: float) -> None:
        with self._lock:
            self._critical.add(seconds, time.monotonic())

    def _note_ttbr(self, type: str, ttbr: timedelta | None) -> None:
        """Expired messages count, too: with a peek delay above the TTBR, all of them expire (T16)."""
        if ttbr is not None and timedelta() < ttbr < self._ttbrs.get(type, timedelta.max):
            with self._lock:
                name = kept_as(type, self._ttbrs)
                self._ttbrs[name] = min(ttbr, self._ttbrs.get(name, timedelta.max))

    # for the reporter

    def went_wrong(self, error: str) -> None:
        """Record an error of this moment: it is shown as the process's last error, until the next one."""
        with self._lock:
            self.figures.last_error, self.figures.last_error_at = error, datetime.now(UTC)

    def row(self, slots: int = 0) -> dict[str, object]:
        """The figures in the columns of a process's row. ``slots``: for the busy share."""
        with self._lock:
            return {
                **vars(self.figures),
                "busy": self._busy.busy,
                "busy_share": self._busy.share(slots),
                "handled_per_second": self._pace.per_second(time.monotonic()),
                "critical_p50_ms": self._critical.percentile_ms(0.50),
                "critical_p95_ms": self._critical.percentile_ms(0.95),
                "processing_p95_ms": self._handled.percentile_ms(0.95),
            }

    def ttbrs(self) -> dict[str, timedelta]:
        """T16: the smallest time to be received by message type, of those not forgotten."""
        with self._lock:
            return dict(self._ttbrs)

    def forget_ttbrs(self, told: Mapping[str, timedelta]) -> None:
        """Forget TTBRs as stored: those still in use will be seen again. Smaller ones seen since are stored first."""
        with self._lock:
            self._ttbrs = {kind: ttbr for kind, ttbr in self._ttbrs.items() if told.get(kind) != ttbr}

    @property
    def duplicates(self) -> int:
        """Number of duplicates that the outbox caught."""
        with self._lock:
            return self._duplicates

    def lost(self) -> dict[str, int]:
        """Number of expired messages by type."""
        with self._lock:
            return dict(self._lost)


def kept_as(type: str, known: Mapping[str, object]) -> str:
    """The name under which a type is remembered, given the known ones."""
    name = type[:512]
    return name if name in known or len(known) < MOST_TYPES else OTHER_TYPES


@dataclass
class RecentDurations:
    """Durations of the last minute, at most the last two thousand."""

    times: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_MOST_TIMES))

    def add(self, seconds: float, now: float) -> None:
        """Add a duration that ended at ``now``, by the monotonic clock."""
        self.times.append((now, seconds))

    def percentile_ms(self, share: float) -> float | None:
        """``share``: 0 to 1. None if nothing ended in the last minute."""
        self._forget()
        return _percentile((seconds for _, seconds in self.times), share)

    def _forget(self) -> None:
        oldest = time.monotonic() - WINDOW
        while self.times and self.times[0][0] < oldest:
            self.times.popleft()


def _percentile(values: Iterable[float], share: float) -> float | None:
    ordered = sorted(values)
    return round(1000 * ordered[int(share * (len(ordered) - 1))], 3) if ordered else None

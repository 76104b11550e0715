"""Whether messages are received before they expire: a type's observed waits against its TTBR and a peek delay. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction

from pgqueue_admin.history.rollups import histogram
from pgqueue_admin.models import database_clock
from pgqueue_admin.models.raw_sql import console_sql, run

SAFE = 0.999  # share of the delivered messages that must stay in time with one more peek delay
DAYS = 7


@dataclass(frozen=True, slots=True)
class QueueWaits:
    """``numbers``: messages by bucket of delivery time (milliseconds); ``expired``: messages not received in time."""

    numbers: Mapping[int, int]
    expired: int = 0

    @property
    def messages(self) -> int:
        return sum(self.numbers.values()) + self.expired

    def within(self, share: float) -> float | None:
        """Milliseconds within which this share of the delivered messages reached a handler."""
        return histogram.percentile(self.numbers, share)

    @property
    def half(self) -> float | None:
        return self.within(0.5)

    @property
    def nearly_all(self) -> float | None:
        return self.within(SAFE)

    def lost(self, ttbr_ms: int) -> float:
        """Share of messages that were too late: dropped as expired, or past their TTBR when the handler began."""
        return self._share(self.expired + self._longer_than(ttbr_ms))

    def at_risk(self, ttbr_ms: int, delay_ms: int) -> float:
        """Share of messages that came in time, and would be late with one more peek delay."""
        return self._share(self._longer_than(ttbr_ms - delay_ms) - self._longer_than(ttbr_ms))

    def safe_delay_ms(self, ttbr_ms: int) -> int | None:
        """The largest peek delay that keeps SAFE of them in time; None if no delay is short enough."""
        left = ttbr_ms - (self.nearly_all or 0) * (1 + histogram.RELATIVE_ERROR)
        return int(left) if left > 0 else None

    def _longer_than(self, milliseconds: float) -> int:
        place = histogram.bucket(milliseconds)
        return sum(number for bucket, number in self.numbers.items() if bucket > place or milliseconds < 0)

    def _share(self, number: int) -> float:
        return number / self.messages if self.messages else 0.0


# T16: for each smallest TTBR, how long messages of that type waited in recent days, and how many expired.
@transaction.atomic
def measure_waits() -> None:
    """Merge the histograms of DAYS (UTC, today last) in one statement."""
    since = (database_clock.now() - timedelta(days=DAYS - 1)).date()
    run(console_sql.trends.measure_waits(), {"since": since})

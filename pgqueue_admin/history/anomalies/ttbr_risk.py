"""Are messages received before they expire? What was observed of a type, against its TTBR and a peek delay. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction

from pgqueue_admin.history.rollups import histogram
from pgqueue_admin.models import database_clock
from pgqueue_admin.models.raw_sql import console_sql, run

SAFE = 0.999  # of what was delivered must stay in time, were it to wait for one more peek
DAYS = 7


@dataclass(frozen=True, slots=True)
class QueueWaits:
    """``numbers``: messages by bucket of delivery time (milliseconds); ``expired``: those that nobody got in time."""

    numbers: Mapping[int, int]
    expired: int = 0

    @property
    def messages(self) -> int:
        return sum(self.numbers.values()) + self.expired

    def within(self, share: float) -> float | None:
        """Milliseconds within which that share of those delivered began."""
        return histogram.percentile(self.numbers, share)

    @property
    def half(self) -> float | None:
        return self.within(0.5)

    @property
    def nearly_all(self) -> float | None:
        return self.within(SAFE)

    def lost(self, ttbr_ms: int) -> float:
        """The share that came too late: dropped as expired, or begun by a handler when its time was over."""
        return self._share(self.expired + self._longer_than(ttbr_ms))

    def at_risk(self, ttbr_ms: int, delay_ms: int) -> float:
        """The share that came in time, and would not have come so after one more peek delay."""
        return self._share(self._longer_than(ttbr_ms - delay_ms) - self._longer_than(ttbr_ms))

    def safe_delay_ms(self, ttbr_ms: int) -> int | None:
        """The largest peek delay with which SAFE of them still come in time; None where none is short enough."""
        left = ttbr_ms - (self.nearly_all or 0) * (1 + histogram.RELATIVE_ERROR)
        return int(left) if left > 0 else None

    def _longer_than(self, milliseconds: float) -> int:
        place = histogram.bucket(milliseconds)
        return sum(number for bucket, number in self.numbers.items() if bucket > place or milliseconds < 0)

    def _share(self, number: int) -> float:
        return number / self.messages if self.messages else 0.0


# T16: beside each smallest TTBR, how long messages of that type waited in the last days, and how many in vain.
@transaction.atomic
def measure_waits() -> None:
    """Histograms of DAYS (of UTC, the last one is today) merged, in one statement."""
    since = (database_clock.now() - timedelta(days=DAYS - 1)).date()
    run(console_sql.trends.measure_waits(), {"since": since})

"""Why the oldest message of a queue waits, as far as known."""

from dataclasses import dataclass

from pgqueue_admin.formatting.numbers import pluralize, rate


@dataclass(frozen=True, slots=True)
class AgeExplanation:
    """Arrival and departure rates; for our own endpoints also how many slots are busy."""

    into: float | None = None
    out: float | None = None
    busy: int = 0
    slots: int = 0

    @property
    def said(self) -> str:
        """Includes what to check first; without a full stop, because more advice follows."""
        if self.into is None or self.out is None:
            return "Messages arrive quicker than they are handled, or are not handled at all. See who receives"
        if self.slots and self.busy >= self.slots:
            return f"Handlers are slow, not missing: {self._busy}, {self._rates}. See how long an attempt takes"
        if not self.out:
            return f"Nothing leaves, {rate(self.into)} arrive. See who receives"
        state = "It empties" if self.out > self.into else "It does not empty at this rate"
        return f"{state}: {self._rates}. See who receives"

    @property
    def _busy(self) -> str:
        return f"{self.busy} of {pluralize(self.slots, 'slot')} busy"

    @property
    def _rates(self) -> str:
        return f"{rate(self.into)} arrive and {rate(self.out)} leave"

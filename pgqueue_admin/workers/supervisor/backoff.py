"""Backoff before a crashed process is started again."""

from collections.abc import Callable
from dataclasses import dataclass, field

FIRST, LONGEST = 0.5, 120.0
PROVEN = 10.0  # seconds: a process that ran this long did not fail at once; its next crash counts as the first


@dataclass
class Backoff:
    """Doubles with each round of consecutive crashes: processes that start and crash together count once."""

    clock: Callable[[], float]
    longest: float = LONGEST
    crashes: int = 0
    until: float = field(default=0.0)
    _last: float = field(default=float("-inf"))  # time of the newest crash

    def crashed(self, ran: float) -> float:
        """Record a crash after ``ran`` seconds; return the seconds until the next start."""
        now = self.clock()
        if ran >= PROVEN:
            self.crashes = 1
        elif now - ran >= self._last:
            self.crashes += 1
        self._last = now
        wait = min(self.longest, FIRST * 2 ** (self.crashes - 1))
        self.until = now + wait
        return wait

    @property
    def waiting(self) -> bool:
        return self.left > 0

    @property
    def left(self) -> float:
        """Seconds until the next start."""
        return max(0.0, self.until - self.clock())

    def start_now(self) -> None:
        """Start now, as a person asked. After another crash the backoff grows further."""
        self.until = 0.0

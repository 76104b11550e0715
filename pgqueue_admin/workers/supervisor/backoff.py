"""How long a crashed process waits before it is started again."""

from collections.abc import Callable
from dataclasses import dataclass, field

FIRST, LONGEST = 0.5, 120.0
PROVEN = 10.0  # who ran so long did not fail at once: the next crash counts as a first


@dataclass
class Backoff:
    """Doubles with every round of crashes in a row: those that began together and crash together are one."""

    clock: Callable[[], float]
    longest: float = LONGEST
    crashes: int = 0
    until: float = field(default=0.0)
    _last: float = field(default=float("-inf"))  # when the newest crash was

    def crashed(self, ran: float) -> float:
        """Note a crash after ``ran`` seconds; return for how many seconds nothing starts."""
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
        """Seconds until something starts again."""
        return max(0.0, self.until - self.clock())

    def start_now(self) -> None:
        """A person said: now. Should it crash again, it waits longer still."""
        self.until = 0.0

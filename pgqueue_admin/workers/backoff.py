"""How long a crashed process waits before it is started again."""

from collections.abc import Callable
from dataclasses import dataclass, field

FIRST, LONGEST = 0.5, 120.0
PROVEN = 10.0  # who ran so long did not fail at once: the next crash counts as a first


@dataclass
class Backoff:
    """Doubles with every crash in a row."""

    clock: Callable[[], float]
    longest: float = LONGEST
    crashes: int = 0
    until: float = field(default=0.0)

    def crashed(self, ran: float) -> float:
        """Note a crash after ``ran`` seconds; return for how many seconds nothing starts."""
        self.crashes = 1 if ran >= PROVEN else self.crashes + 1
        wait = min(self.longest, FIRST * 2 ** (self.crashes - 1))
        self.until = self.clock() + wait
        return wait

    @property
    def waiting(self) -> bool:
        return self.clock() < self.until

    def start_now(self) -> None:
        """A person said: now. Should it crash again, it waits longer still."""
        self.until = 0.0

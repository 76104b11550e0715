"""Messages per second and utilization of slots over the last minute."""

import time
from collections import deque
from collections.abc import Callable

# Messages per second, over the last minute.
SECONDS = 60


class RateCounter:
    """A ring with one count per second: exact for any number of messages and any interval between queries.

    ``now``: seconds of one monotonic clock.
    """

    def __init__(self, now: float):
        self._began = now
        self._newest = int(now)
        self._counts = [0] * SECONDS

    def add(self, now: float) -> None:
        if now >= self._newest + 1:
            self._turn(int(now))
        self._counts[self._newest % SECONDS] += 1

    def per_second(self, now: float) -> float:
        self._turn(int(now))
        since = max(self._began, self._newest - SECONDS + 1)
        return sum(self._counts) / max(1.0, now - since)

    def _turn(self, second: int) -> None:
        """Reset the counts of seconds begun since: each reuses the place of the second a minute before."""
        for each in range(max(self._newest, second - SECONDS) + 1, second + 1):
            self._counts[each % SECONDS] = 0
        self._newest = second


# Share of the last minute in which slots had a message in flight.
WINDOW = 60.0


class BusyTime:
    """Each slot is written by its own thread; the reporter sums them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._since: dict[int, float] = {}
        self._spent: dict[int, float] = {}
        self._looks: deque[tuple[float, float]] = deque([(clock(), 0.0)])

    @property
    def busy(self) -> int:
        return len(self._since)

    def take(self, slot: int) -> None:
        self.put_down(slot)
        self._since[slot] = self._clock()

    def put_down(self, slot: int) -> None:
        since = self._since.pop(slot, None)
        if since is not None:
            self._spent[slot] = self._spent.get(slot, 0.0) + self._clock() - since

    def share(self, slots: int) -> float | None:
        """Busy share of ``slots``, 0 to 1; None at first. Call once per beat: each result is kept for a minute."""
        now = self._clock()
        total = sum(list(self._spent.values())) + sum(now - since for since in list(self._since.values()))
        while len(self._looks) > 1 and self._looks[1][0] <= now - WINDOW:
            self._looks.popleft()
        then, before = self._looks[0]
        self._looks.append((now, total))
        if now <= then or slots < 1:
            return None
        return min(1.0, max(0.0, (total - before) / ((now - then) * slots)))

"""How many a second, in the last minute."""

SECONDS = 60


class RateCounter:
    """A count for each second of it, in a ring: exact however many there are, and however rarely somebody asks.

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
        """Each second that has begun meanwhile has the place of the one a minute before it."""
        for each in range(max(self._newest, second - SECONDS) + 1, second + 1):
            self._counts[each % SECONDS] = 0
        self._newest = second

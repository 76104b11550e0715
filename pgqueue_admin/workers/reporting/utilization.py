"""How much of the last minute the slots of a process had a message in hand."""

import time
from collections import deque
from collections.abc import Callable

WINDOW = 60.0


class BusyTime:
    """Each slot is written by its own thread; whoever reports adds them up."""

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
        """Of ``slots``, 0 to 1; None in the first moment. Asked once a beat: each answer is kept for a minute."""
        now = self._clock()
        total = sum(list(self._spent.values())) + sum(now - since for since in list(self._since.values()))
        while len(self._looks) > 1 and self._looks[1][0] <= now - WINDOW:
            self._looks.popleft()
        then, before = self._looks[0]
        self._looks.append((now, total))
        if now <= then or slots < 1:
            return None
        return min(1.0, max(0.0, (total - before) / ((now - then) * slots)))

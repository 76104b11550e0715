"""Moves due delayed messages into the queue. Sleeps until the next one is due (wire sheet 3)."""

import threading
import time
from collections.abc import Callable

from pgqueue_admin.transport.delayed.table import BATCH, DelayedTable
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.sessions.reconnecting_session import Connect, ReconnectingSession

FIRST_SECONDS = 1.0
MOST_SECONDS = 60.0


class MoverPace:
    """Pauses between moves: 1, 2, 4 … 60 s while nothing is due, less if the next due time is sooner."""

    def __init__(self) -> None:
        self._seconds = FIRST_SECONDS

    def after(self, moved: int, due_in: float | None) -> float:
        """Seconds to pause. Overdue messages that were not moved are locked by another mover: no need to hurry."""
        if moved:
            self._seconds = FIRST_SECONDS
        if moved >= BATCH:
            return 0
        if due_in is not None and 0 <= due_in <= self._seconds:
            self._seconds = FIRST_SECONDS
            return due_in
        rest, self._seconds = self._seconds, min(self._seconds * 2, MOST_SECONDS)
        return rest


class MoverAlarm:
    """A pause that storing a delayed message can shorten, even before it begins."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._changed = threading.Condition()
        self._pulled: float | None = None

    def pull_forward(self, seconds: float) -> None:
        """Note that a message is due in so many seconds."""
        with self._changed:
            at = self._clock() + seconds
            self._pulled = at if self._pulled is None else min(self._pulled, at)
            self._changed.notify_all()

    def rest(self, seconds: float) -> None:
        """Pause for so many seconds, or until a noted message is due."""
        until = self._clock() + seconds
        with self._changed:
            while (left := self._earliest(until) - self._clock()) > 0:
                self._changed.wait(left)
            if self._pulled is not None and self._pulled <= self._clock():
                self._pulled = None

    def _earliest(self, until: float) -> float:
        return until if self._pulled is None else min(until, self._pulled)


class DueMessageMover:
    """A thread of a receiving endpoint. Several movers, also foreign ones, can work concurrently.

    ``moved`` is called after each commit that moved messages into the queue.
    """

    def __init__(
        self,
        name: str,
        delayed: DelayedTable,
        connect: Connect,
        alarm: MoverAlarm,
        breaker: CircuitBreaker,
        moved: Callable[[], None],
    ):
        self._delayed = delayed
        self._session = ReconnectingSession(connect)
        self._alarm = alarm
        self._pace = MoverPace()
        self._breaker = breaker
        self._moved = moved
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name=f"{name} due", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop within about a second: a move in progress is rolled back, for another mover to repeat."""
        self._stopping = True
        self._alarm.pull_forward(0)
        self._thread.join(1)
        self._session.abort()
        self._thread.join()
        self._session.close()

    def _loop(self) -> None:
        while not self._stopping:
            self._alarm.rest(self._round())

    def _round(self) -> float:
        try:
            with self._session.transaction() as session:
                moved, due_in = self._delayed.move_due(session), self._delayed.next_due(session)
            if moved:
                self._moved()
        except Exception as error:  # any error: delayed messages must not wait for a restart
            return 0 if self._stopping else self._breaker.failed(error)
        self._breaker.succeeded()
        return self._pace.after(moved, due_in)

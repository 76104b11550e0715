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
    """How long to rest: 1, 2, 4 … 60 s while nothing is due, less when it is known when something will be."""

    def __init__(self) -> None:
        self._seconds = FIRST_SECONDS

    def after(self, moved: int, due_in: float | None) -> float:
        """What is overdue and was not moved is in another mover's hands: no reason to hurry."""
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
    """A rest that whoever stores a delayed message may shorten, also before it has begun."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._changed = threading.Condition()
        self._pulled: float | None = None

    def pull_forward(self, seconds: float) -> None:
        """Something is due in that many seconds."""
        with self._changed:
            at = self._clock() + seconds
            self._pulled = at if self._pulled is None else min(self._pulled, at)
            self._changed.notify_all()

    def rest(self, seconds: float) -> None:
        """Until so many seconds are over, or until what was pulled forward is due."""
        until = self._clock() + seconds
        with self._changed:
            while (left := self._earliest(until) - self._clock()) > 0:
                self._changed.wait(left)
            if self._pulled is not None and self._pulled <= self._clock():
                self._pulled = None

    def _earliest(self, until: float) -> float:
        return until if self._pulled is None else min(until, self._pulled)


class DueMessageMover:
    """A thread of an endpoint that receives. Several, also foreign ones, may move beside each other.

    ``moved`` is called after each commit that put something into the queue.
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
        """At once: a move that is under way is rolled back, and somebody else's soon."""
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
        except Exception as error:  # whatever it is, delayed messages must not wait for a restart
            return 0 if self._stopping else self._breaker.failed(error)
        self._breaker.succeeded()
        return self._pace.after(moved, due_in)

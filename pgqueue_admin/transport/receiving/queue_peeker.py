"""Looks how many messages wait, in a short transaction on a session of its own (T10)."""

import time

from pgqueue_admin.transport.receiving.low_water_mark import LowWaterMarks
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.sessions.reconnecting_session import Connect, ReconnectingSession
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.tables.table_queue import TableQueue

GOOD_FOR_SECONDS = 1.0


class QueuePeeker:
    """Counts by the seq range, which takes two index probes however many rows there are."""

    def __init__(self, queue: TableQueue, connect: Connect, low_water: LowWaterMarks, breaker: CircuitBreaker):
        self._queue = queue
        self._low_water = low_water
        self._took = 0.0
        self._session = ReconnectingSession(connect)
        self.breaker = breaker

    def peek(self) -> int:
        """Raises DatabaseError."""
        session, started = self._session.fresh(), time.monotonic()
        pending, head = self._queue.look(session)
        self._took = time.monotonic() - started
        self._low_water.peeked(head)
        self.breaker.succeeded()
        return pending

    @property
    def good_for(self) -> float:
        """Seconds until the next look, however much waits: what is below the mark must not wait longer.

        Each look walks through the dead rows that receives are spared, so it may take a tenth of the time.
        """
        return max(GOOD_FOR_SECONDS, 10 * self._took)

    def receives(self, pending: int, settings: EndpointSettings, troubled: bool) -> int:
        """How many to start: for all that wait, or as many as ``max_records_to_peek`` allows (T17); one in trouble."""
        if troubled or self.breaker.triggered:
            return 1
        return -(-min(pending, settings.max_records_to_peek or pending) // settings.batch_size)

    def close(self) -> None:
        self._session.close()

    def cut(self) -> None:
        self._session.cut()

"""The receive loop: peek, wait while the queue is empty, receive, peek again (T10 to T14)."""

import threading
import time
from functools import partial
from typing import Any

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.ports import HeldMessage, Observer
from pgqueue_admin.transport.receiving.batch_task import next_task
from pgqueue_admin.transport.receiving.in_flight import LowWaterMarks
from pgqueue_admin.transport.receiving.pump_state import EmptyReceiveBackoff, ReceiveQuota, Signals
from pgqueue_admin.transport.receiving.receive_task import ReceiverContext
from pgqueue_admin.transport.receiving.worker_slots import WorkerSlots
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.sessions.reconnecting_session import Connect, ReconnectingSession
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.tables.table_queue import TableQueue

GOOD_FOR_SECONDS = 1.0  # least time between peeks while messages wait


class QueuePeeker:
    """Peeks by the seq range, with two index probes, in a short transaction on its own session (T10)."""

    def __init__(self, queue: TableQueue, connect: Connect, low_water: LowWaterMarks, breaker: CircuitBreaker):
        self._queue = queue
        self._low_water = low_water
        self._took = 0.0
        self._session = ReconnectingSession(connect)
        self.breaker = breaker

    def peek(self) -> int:
        """Return how many messages wait. Raises DatabaseError."""
        session, started = self._session.fresh(), time.monotonic()
        pending, head = self._queue.look(session)
        self._took = time.monotonic() - started
        self._low_water.peeked(head)
        self.breaker.succeeded()
        return pending

    @property
    def good_for(self) -> float:
        """Seconds until the next peek, however many messages wait: rows below the mark must not wait longer.

        A peek scans the dead rows that receives skip, so it may take a tenth of the time.
        """
        return max(GOOD_FOR_SECONDS, 10 * self._took)

    def receives(self, pending: int, settings: EndpointSettings, troubled: bool) -> int:
        """Receives to start: for all messages, or as ``max_records_to_peek`` allows (T17); one while troubled."""
        if troubled or self.breaker.triggered:
            return 1
        return -(-min(pending, settings.max_records_to_peek or pending) // settings.batch_size)

    def close(self) -> None:
        self._session.close()

    def abort(self) -> None:
        self._session.abort()


class MessagePump:
    """The receive loop of one queue: a thread that peeks, and slots that receive."""

    def __init__(
        self,
        name: str,
        peeker: QueuePeeker,
        slots: WorkerSlots,
        work: ReceiverContext,
        settings: EndpointSettings,
        signals: Signals,
        paused: bool = False,
    ):
        self._peeker = peeker
        self._slots = slots
        self._work = work
        self._settings = settings
        self._signals = signals
        self._paused = paused
        self._vain = EmptyReceiveBackoff(name)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=f"{name} peek", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def apply(self, settings: EndpointSettings) -> None:
        self._settings = settings
        self._slots.resize(settings.concurrency)
        self._signals.wake()

    def wake(self) -> None:
        """Peek now: a message has arrived."""
        self._signals.wake()

    def pause(self) -> None:
        """Stop receiving; messages in flight are finished."""
        self._paused = True
        self._signals.wake()

    def resume(self) -> None:
        self._paused = False
        self._signals.wake()

    def stop(self, drain_seconds: float) -> bool:
        """Stop. False: some messages were still in flight after ``drain_seconds``, and return to the queue."""
        self._signals.stop()
        drained = self._slots.drain(drain_seconds)
        self._thread.join(1)
        self._peeker.abort()
        self._thread.join()
        self._peeker.close()
        return drained

    def wait(self) -> None:
        """Wait until stopped, or Ctrl-C.

        Not by ``join``: before Python 3.13, Ctrl-C in it marks the thread as ended although it runs.
        """
        self._ended.wait()

    def is_one_of_ours(self) -> bool:
        return self._slots.is_one_of_ours()

    @property
    def in_flight(self) -> int:
        return self._slots.busy

    def _loop(self) -> None:
        try:
            while not self._signals.stopping():
                if seconds := self._round():
                    self._signals.rest(seconds)
        finally:
            self._ended.set()

    def _round(self) -> float:
        """One peek and its receives. Return the pause before the next: none after receives (T13)."""
        self._signals.looking()
        if self._paused:
            return self._settings.peek_delay
        try:
            pending = self._peeker.peek()
        except Exception as error:  # any error: an endpoint that no longer peeks would be worse
            # at a stop, a slow peek is aborted, and none follows
            return 0 if self._signals.stopping() else self._peeker.breaker.failed(error)
        if pending == 0:
            self._work.breaker.succeeded()  # messages whose receive failed are gone, e.g. after an unanswered commit
            return self._settings.peek_delay
        return self._vain.after(self._receive(pending), self._settings.peek_delay)

    @property
    def _halted(self) -> bool:
        return self._paused or self._signals.stopping()

    def _receive(self, pending: int) -> ReceiveQuota:
        settings = self._settings
        until = time.monotonic() + self._peeker.good_for
        most = self._peeker.receives(pending, settings, self._work.breaker.triggered)
        receives = ReceiveQuota(
            self._signals.changed, most, lambda: self._halted or time.monotonic() >= until, settings.max_records_to_peek
        )
        self._slots.work_off(receives, partial(next_task, self._work, receives))
        receives.wait(for_handlers=settings.repeek_after == "handlers", unless=self._signals.stopping)
        return receives


class EndpointReceivers:
    """An endpoint's pumps, one per queue: started, paused and stopped together.

    Each has its own slots: handlers that wait for a reply must not block the reply.
    """

    def __init__(self, by_queue: dict[Address, MessagePump]):
        self.by_queue = by_queue
        self._all = list(by_queue.values())

    def start(self) -> None:
        for receiver in self._all:
            receiver.start()

    def stop(self, drain_seconds: float) -> bool:
        """Stop the endpoint's own queue first: its handlers may still wait for replies."""
        until = time.monotonic() + drain_seconds
        return all([receiver.stop(max(0, until - time.monotonic())) for receiver in self._all])

    def pause(self) -> None:
        for receiver in self._all:
            receiver.pause()

    def resume(self) -> None:
        for receiver in self._all:
            receiver.resume()

    def apply(self, settings: EndpointSettings) -> None:
        for receiver in self._all:
            receiver.apply(settings)

    def wait(self) -> None:
        for receiver in self._all:
            receiver.wait()

    def is_one_of_ours(self) -> bool:
        """Whether the current thread handles a message of one of these."""
        return any(receiver.is_one_of_ours() for receiver in self._all)

    @property
    def in_flight(self) -> int:
        return sum(receiver.in_flight for receiver in self._all)


class IndexedObserver:
    """The endpoint's observer for one of its queues: interleaves slot numbers, so that queues share none."""

    def __init__(self, observer: Observer, place: int, several: int):
        self._observer, self._place, self._several = observer, place, several

    def in_flight(self, slot: int, message: HeldMessage | None) -> None:
        self._observer.in_flight(slot * self._several + self._place, message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._observer, name)

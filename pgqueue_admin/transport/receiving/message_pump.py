"""The loop: peek; nothing there, rest; something there, receive; and peek again (T10 to T14)."""

import threading
import time
from functools import partial

from pgqueue_admin.transport.receiving.batch_task import next_task
from pgqueue_admin.transport.receiving.empty_receive_backoff import EmptyReceiveBackoff
from pgqueue_admin.transport.receiving.queue_peeker import QueuePeeker
from pgqueue_admin.transport.receiving.receive_quota import ReceiveQuota
from pgqueue_admin.transport.receiving.receive_task import ReceiverContext
from pgqueue_admin.transport.receiving.signals import Signals
from pgqueue_admin.transport.receiving.worker_slots import WorkerSlots
from pgqueue_admin.transport.settings import EndpointSettings


class MessagePump:
    """A thread that peeks, and slots that receive."""

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
        """Peek now: somebody knows that a message has come."""
        self._signals.wake()

    def pause(self) -> None:
        """Receive nothing more; what is in hand is finished."""
        self._paused = True
        self._signals.wake()

    def resume(self) -> None:
        self._paused = False
        self._signals.wake()

    def stop(self, drain_seconds: float) -> bool:
        """False: some messages were still in hand after ``drain_seconds``, and were let go back to the queue."""
        self._signals.stop()
        drained = self._slots.drain(drain_seconds)
        self._thread.join(1)
        self._peeker.cut()
        self._thread.join()
        self._peeker.close()
        return drained

    def wait(self) -> None:
        """Until it is stopped, or Ctrl-C.

        Not by ``join``: before Python 3.13 a Ctrl-C in it has the thread count as ended, while it goes on.
        """
        self._ended.wait()

    def is_one_of_ours(self) -> bool:
        return self._slots.is_one_of_ours()

    @property
    def in_hand(self) -> int:
        return self._slots.busy

    def _loop(self) -> None:
        try:
            while not self._signals.stopping():
                if seconds := self._round():
                    self._signals.rest(seconds)
        finally:
            self._ended.set()

    def _round(self) -> float:
        """One peek and what it leads to. Return how long to rest before the next: not at all after receives (T13)."""
        self._signals.looking()
        if self._paused:
            return self._settings.peek_delay
        try:
            pending = self._peeker.peek()
        except Exception as error:  # whatever it is, an endpoint that no longer looks would be the worse fault
            # when it stops, a peek that takes long is cut off, and none follows
            return 0 if self._signals.stopping() else self._peeker.breaker.failed(error)
        if pending == 0:
            self._work.breaker.succeeded()  # what could not be received is gone, as after a commit without an answer
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

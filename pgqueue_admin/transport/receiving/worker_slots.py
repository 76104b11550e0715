"""Worker threads: one per message handled at once, each with its own sessions (T11)."""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol

from pgqueue_admin.dialects.connection import Connection
from pgqueue_admin.transport.ports import Outbox
from pgqueue_admin.transport.receiving.pump_state import ReceiveQuota
from pgqueue_admin.transport.sessions.reconnecting_session import ReconnectingSession

log = logging.getLogger("pgqueue_admin.transport")


class WorkerSlot:
    """A slot for one message in flight. Sessions: ``receive`` for the receive transaction, ``send`` for sends outside
    of it, ``storage`` for writes that commit with the outbox.
    """

    def __init__(self, number: int, name: str, connect: Callable[..., Connection], slots: "WorkerSlots"):
        self.number = number
        self.next: Receive | None = None  # the next task, already begun in the session
        self.receive = ReconnectingSession(partial(connect, for_handlers=True))
        self.send = ReconnectingSession(connect)
        self.storage: ReconnectingSession | None = None
        self._storage_of: object = None
        self._enlisted: dict[str, ReconnectingSession] = {}
        self._slots = slots
        self._has_rested = True
        self._calls: SimpleQueue[bool] = SimpleQueue()
        self.thread = threading.Thread(target=self._work, name=f"{name} slot {number}", daemon=True)
        self.thread.start()

    def session(self) -> Connection:
        """The session for the next receive, checked for closure by the server after a pause. Raises DatabaseDown."""
        if not self._has_rested:
            return self.receive.get()
        self._has_rested = False
        return self.receive.fresh()

    def another(self) -> "Receive | None":
        """One more receive, counted as started; None if this slot may start no more."""
        return self._slots.start(self)

    def wake(self) -> None:
        self._calls.put(True)

    def retire(self) -> None:
        self._calls.put(False)

    def abort(self) -> None:
        self.receive.abort()
        self.send.abort()
        for session in [self.storage, *self._enlisted.values()]:
            if session:
                session.abort()

    def storage_of(self, outbox: Outbox) -> ReconnectingSession:
        """Its storage session, kept until the endpoint has another outbox."""
        if self.storage is None or self._storage_of is not outbox:
            self.close_storage()
            self.storage, self._storage_of = ReconnectingSession(outbox.connect), outbox
        return self.storage

    def enlisted_of(self, outbox: Outbox, name: str) -> ReconnectingSession:
        """Its session of an enlisted database, kept like the storage session."""
        self.storage_of(outbox)
        if name not in self._enlisted:  # replaced, not changed: ``abort`` iterates over it in another thread
            self._enlisted = {**self._enlisted, name: ReconnectingSession(outbox.databases[name].connect)}
        return self._enlisted[name]

    def close_storage(self) -> None:
        storage, self.storage = self.storage, None
        enlisted, self._enlisted = self._enlisted, {}
        for session in [storage, *enlisted.values()]:
            if session:
                session.close()

    def _work(self) -> None:
        while self._calls.get():
            self._slots.run(self)
            self._has_rested = True
        self.receive.close()
        self.send.close()
        self.close_storage()


class Receive(Protocol):
    def __call__(self, slot: WorkerSlot) -> None: ...
    def begin_behind(self, before: Any) -> None:
        """Begin in the round trip that commits the previous receive."""


class WorkerSlots:
    """Slots, made on demand up to ``size``, which may change while they work.

    A finished slot starts the next receive itself: a hand-over from another thread costs more than a short handler.
    """

    def __init__(self, size: int, name: str, connect: Callable[..., Connection], changed: threading.Condition):
        self._size = size
        self._name = name
        self._connect = connect
        self._changed = changed
        self._work: tuple[ReceiveQuota, Callable[[], Receive]] | None = None
        self._free: dict[int, WorkerSlot] = {}
        self._busy: dict[int, WorkerSlot] = {}

    def work_off(self, receives: ReceiveQuota, make: Callable[[], Receive]) -> None:
        """Run tasks from ``make`` in slot threads, as many as ``receives`` allows. Does not wait for them."""
        with self._changed:
            self._work = receives, make
            self._wake()

    def resize(self, size: int) -> None:
        """Change the number of slots; messages in flight are finished."""
        with self._changed:
            self._size = size
            for number in [number for number in self._free if number >= size]:
                self._free.pop(number).retire()
            self._wake()
            self._changed.notify_all()

    @property
    def busy(self) -> int:
        return len(self._busy)

    def is_one_of_ours(self) -> bool:
        with self._changed:
            return any(slot.thread is threading.current_thread() for slot in self._busy.values())

    def drain(self, seconds: float) -> bool:
        """Wait for messages in flight, then end all threads. False: some were still in flight and were aborted."""
        deadline = time.monotonic() + seconds
        with self._changed:
            drained = self._changed.wait_for(lambda: not self._busy, max(0, deadline - time.monotonic()))
            for slot in self._busy.values():
                slot.abort()
            self.resize(0)
        return drained

    def _wake(self) -> None:
        """Wake slots for the receives left, lowest number first."""
        left = self._work[0].left if self._work else 0
        for _ in range(min(left, self._size - len(self._busy))):
            number = next(number for number in range(len(self._busy) + 1) if number not in self._busy)
            slot = self._free.pop(number, None) or WorkerSlot(number, self._name, self._connect, self)
            self._busy[number] = slot
            slot.wake()

    def run(self, slot: WorkerSlot) -> None:
        """Run tasks on a slot until there are no more."""
        while receive := self._next(slot):
            try:
                receive(slot)
            except BaseException:  # a fault of the engine or of an observer must not cost the endpoint a slot
                log.exception("Slot %d stumbled", slot.number)

    def _next(self, slot: WorkerSlot) -> Receive | None:
        """The slot's next task; None: the slot was given back."""
        begun, slot.next = slot.next, None
        if begun:
            return begun
        with self._changed:
            started = self.start(slot)
            if started is None:
                self._give_back(slot)
            return started

    def start(self, slot: WorkerSlot) -> Receive | None:
        with self._changed:
            fits = slot.number < self._size and len(self._busy) <= self._size
            return self._work[1]() if fits and self._work and self._work[0].start() else None

    def _give_back(self, slot: WorkerSlot) -> None:
        del self._busy[slot.number]
        if slot.number < self._size:
            self._free[slot.number] = slot
        else:
            slot.retire()
        self._wake()
        self._changed.notify_all()

"""Threads for receive tasks: as many as may handle messages at once, each with sessions of its own (T11)."""

import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from pgqueue_admin.transport.kept_session import Connect, KeptSession

log = logging.getLogger("pgqueue_admin.transport")

Task = Callable[["Slot"], None]


class Slot:
    """One place for a message in hand. ``receive`` holds the receive transaction, ``send`` what is not part of it."""

    def __init__(self, number: int, name: str, connect: Connect, give_back: Callable[["Slot"], None]):
        self.number = number
        self.receive = KeptSession(connect)
        self.send = KeptSession(connect)
        self._give_back = give_back
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        threading.Thread(target=self._work, name=f"{name} slot {number}", daemon=True).start()

    def do(self, task: Task) -> None:
        self._tasks.put(task)

    def retire(self) -> None:
        self._tasks.put(None)

    def cut(self) -> None:
        self.receive.cut()
        self.send.cut()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task(self)
            except BaseException:  # a fault of the engine or of an observer must not cost the endpoint a slot
                log.exception("Slot %d stumbled", self.number)
            finally:
                self._give_back(self)
        self.receive.close()
        self.send.close()


class Slots:
    """Made as they are needed, up to ``size``, which may change while they work."""

    def __init__(self, size: int, name: str, connect: Connect, changed: threading.Condition):
        self._size = size
        self._name = name
        self._connect = connect
        self._changed = changed
        self._free: dict[int, Slot] = {}
        self._busy: dict[int, Slot] = {}

    def take(self, unless: Callable[[], bool]) -> Slot | None:
        """The lowest free slot, waiting for one; None as soon as ``unless`` says so."""
        with self._changed:
            self._changed.wait_for(lambda: unless() or len(self._busy) < self._size)
            if unless():
                return None
            slot = self._lowest()
            self._busy[slot.number] = slot
            return slot

    def resize(self, size: int) -> None:
        """Messages in hand are finished, whatever the new size."""
        with self._changed:
            self._size = size
            for number in [number for number in self._free if number >= size]:
                self._free.pop(number).retire()
            self._changed.notify_all()

    @property
    def busy(self) -> int:
        return len(self._busy)

    def drain(self, seconds: float) -> bool:
        """Wait for the messages in hand; then let all threads go. False: some were still in hand and were cut off."""
        deadline = time.monotonic() + seconds
        with self._changed:
            drained = self._changed.wait_for(lambda: not self._busy, max(0, deadline - time.monotonic()))
            for slot in self._busy.values():
                slot.cut()
            self.resize(0)
        return drained

    def _lowest(self) -> Slot:
        number = next(number for number in range(len(self._busy) + 1) if number not in self._busy)
        return self._free.pop(number, None) or Slot(number, self._name, self._connect, self._give_back)

    def _give_back(self, slot: Slot) -> None:
        with self._changed:
            del self._busy[slot.number]
            if slot.number < self._size:
                self._free[slot.number] = slot
            else:
                slot.retire()
            self._changed.notify_all()

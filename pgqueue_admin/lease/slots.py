"""Handler threads: created on demand, up to the concurrency limit."""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from pgqueue_admin.lease.message import LeasedMessage

log = logging.getLogger("pgqueue_admin.lease")


Handle = Callable[[int, LeasedMessage], None]


class Slots:
    """``handle`` gets the slot number, from 0. ``freed`` is called when a slot becomes free."""

    def __init__(self, size: int, name: str, handle: Handle, freed: Callable[[], None]):
        self.size = size
        self._name, self._handle, self._freed = name, handle, freed
        self._work: SimpleQueue[LeasedMessage | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._busy = self._threads = 0

    @property
    def free(self) -> int:
        return max(0, self.size - self._busy)

    def take(self, lease: LeasedMessage) -> None:
        """A slot must be free: only one thread fills them."""
        with self._lock:
            self._busy += 1
            if self._threads < self._busy:
                name = f"{self._name} slot {self._threads + 1}"
                threading.Thread(target=self._run, args=[self._threads], name=name, daemon=True).start()
                self._threads += 1
        self._work.put(lease)

    def close(self) -> None:
        """Each thread ends after its current message."""
        for _ in range(self._threads):
            self._work.put(None)

    def _run(self, slot: int) -> None:
        while lease := self._work.get():
            try:
                self._handle(slot, lease)
            except BaseException:  # our own bug must not cost the worker a slot
                log.exception("%r stumbled", lease)
            with self._lock:
                self._busy -= 1
            self._freed()

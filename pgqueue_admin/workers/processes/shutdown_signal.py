"""How a process of ours learns that it shall end."""

import signal
from types import FrameType

from pgqueue_admin.workers.processes.wakeup_pipe import HasFileno, WakeupPipe


class ShutdownSignal:
    """Make it in the main thread. No event: a signal handler must not take a lock that its own thread may hold."""

    def __init__(self) -> None:
        self.asked = False
        self._waker = WakeupPipe()
        signal.set_wakeup_fd(self._waker.write_fd, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._heard)

    def ask(self) -> None:
        """From any thread."""
        self.asked = True
        self._waker.set()

    def wait(self, seconds: float | None = None, *others: HasFileno) -> bool:
        """At most so long, or until one of the others has something to read; whether the process shall end."""
        if not self.asked:
            self._waker.wait(seconds, *others)
        return self.asked

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.asked = True

"""What the threads of one endpoint tell each other: look again, stop."""

import threading


class Signals:
    """``changed`` is the one condition that receiver, slots and batches wait on."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._stopping = False
        self._woken = False

    def stopping(self) -> bool:
        return self._stopping

    def stop(self) -> None:
        self._stopping = True
        self.wake()

    def wake(self) -> None:
        """Peek now: a message was put back, settings changed, or somebody knows that a message has come."""
        with self.changed:
            self._woken = True
            self.changed.notify_all()

    def looking(self) -> None:
        """What somebody woke us for until now is seen by the peek that follows."""
        with self.changed:
            self._woken = False

    def rest(self, seconds: float) -> None:
        """The peek loop's pause: until the time is over or somebody wakes it."""
        with self.changed:
            self.changed.wait_for(lambda: self._stopping or self._woken, seconds)
            self._woken = False

    def hold(self, seconds: float) -> None:
        """A slot's pause after trouble: only stopping cuts it short."""
        with self.changed:
            self.changed.wait_for(self.stopping, seconds)

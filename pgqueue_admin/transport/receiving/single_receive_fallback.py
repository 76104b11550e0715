"""After a batch that could not be committed its messages are received one by one: so the one at fault is found."""

import threading


class SingleReceiveFallback:
    """How many of the next receives take a single message."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = 0

    def after(self, messages: int) -> None:
        with self._lock:
            self._left = max(self._left, messages)

    def is_next(self) -> bool:
        """Counts the receive that it is asked for."""
        if not self._left:
            return False
        with self._lock:
            self._left = max(0, self._left - 1)
            return True

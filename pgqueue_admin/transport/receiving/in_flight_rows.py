"""Which rows are in hand here: PostgreSQL gives one up at the first refused statement, before that is counted."""

import threading
from collections.abc import Collection


class InFlightRows:
    """By seq. Who receives a row that another slot still has waits until that attempt is counted."""

    longest = 5.0  # seconds: a handler that takes no notice of the refusal may go on for longer

    def __init__(self) -> None:
        self._rows: set[int] = set()
        self._changed = threading.Condition()
        self._waiting = 0

    def take(self, seqs: Collection[int]) -> None:
        if not self._rows.isdisjoint(seqs):
            self._wait(seqs)
        self._rows.update(seqs)

    def let_go(self, seqs: Collection[int]) -> None:
        self._rows.difference_update(seqs)
        if self._waiting:
            with self._changed:
                self._changed.notify_all()

    def _wait(self, seqs: Collection[int]) -> None:
        with self._changed:
            self._waiting += 1  # before the look: who lets go after it will tell
            self._changed.wait_for(lambda: self._rows.isdisjoint(seqs), self.longest)
            self._waiting -= 1

"""Limits the sessions of a pool that one queue or one person may use, so that one lock does not block all others."""

import threading
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from pgqueue_admin.dialects import deadline
from pgqueue_admin.dialects.errors import Busy

WAIT_SECONDS = 1.0  # for a share; the caller's deadline may end earlier

SEARCH = "search"  # a text search, by person
EXPORT = "export"  # an archive export, by person
ANOTHER_SEARCH = (
    "Another search of yours still reads texts, maybe in another window. It ends within seconds: search again then."
)

person: ContextVar[Hashable] = ContextVar("person", default=None)  # the person this thread reads for


class Shares:
    """Takes all shares or none, so that no caller holds one while it waits for another."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken: Counter[Hashable] = Counter()

    @contextmanager
    def of(self, most: Mapping[Hashable, int]) -> Iterator[None]:
        """``most``: session limit per key (a person, a queue, a purpose). Raises Busy."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._fit(most), min(WAIT_SECONDS, deadline.left())):
                raise Busy(self._why(most))
            self._taken.update(most.keys())
        try:
            yield
        finally:
            with self._changed:
                self._taken.subtract(most.keys())
                self._taken += Counter()  # drops zero counts
                self._changed.notify_all()

    def _why(self, most: Mapping[Hashable, int]) -> str:
        if any(isinstance(each, tuple) and each[0] == SEARCH and self._taken[each] for each in most):
            return ANOTHER_SEARCH
        if any(isinstance(each, tuple) and each[0] == EXPORT for each in most):
            return "Another export of yours is still being read. Wait for its end, or stop it."
        return f"{min(most.values())} reads at once are the limit, so that other pages keep working. Try again."

    def _fit(self, most: Mapping[Hashable, int]) -> bool:
        return all(self._taken[each] < limit for each, limit in most.items())

"""Failed attempts, remembered in this process only, as the original does (wire sheet 5)."""

import threading
from collections import OrderedDict
from dataclasses import replace

from pgqueue_admin.transport.actions import Immediately
from pgqueue_admin.transport.failure import Failure

MOST_REMEMBERED = 10_000


class Failures:
    """The last failure of each row that failed here; a forgotten one only means more attempts."""

    def __init__(self, most: int = MOST_REMEMBERED):
        self._most = most
        self._lock = threading.Lock()
        self._by_row: OrderedDict[str, Failure] = OrderedDict()

    def remember(self, row_id: str, failure: Failure) -> Failure:
        """Count this attempt onto those before it."""
        with self._lock:
            before = self._by_row.pop(row_id, None)
            counted = replace(failure, attempts=before.attempts + 1 if before else 1)
            self._by_row[row_id] = counted
            if len(self._by_row) > self._most:
                self._by_row.popitem(last=False)
            return counted

    def decided(self, row_id: str, failure: Failure) -> None:
        """The same, with what is to be done about it."""
        with self._lock:
            self._by_row[row_id] = failure

    def of(self, row_id: str) -> Failure | None:
        return self._by_row.get(row_id)

    def final(self, row_id: str) -> Failure | None:
        """Why it is not to be handled again at once."""
        failed = self._by_row.get(row_id)
        return failed if failed and not isinstance(failed.action, Immediately) else None

    def forget(self, row_id: str) -> None:
        if row_id in self._by_row:
            with self._lock:
                self._by_row.pop(row_id, None)

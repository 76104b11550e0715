"""Failed attempts by message, per process as in NServiceBus (wire sheet 5)."""

import threading
from collections import OrderedDict
from dataclasses import replace

from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.recoverability_actions import Immediately

MOST_REMEMBERED = 10_000
MOST_CHARACTERS = 10_000_000  # of messages and traces: a row finished by another process is never forgotten here


class FailureCache:
    """The last failure of each row in this process; losing one only means more attempts."""

    def __init__(self, most: int = MOST_REMEMBERED, characters: int = MOST_CHARACTERS):
        self._most, self._most_characters = most, characters
        self._lock = threading.Lock()
        self._by_row: OrderedDict[str, Failure] = OrderedDict()
        self._characters = 0
        self._conflicts: OrderedDict[str, int] = OrderedDict()

    def remember(self, row_id: str, failure: Failure) -> Failure:
        """Store the failure, with its attempt counted."""
        with self._lock:
            before = self._let_go(row_id)
            counted = replace(failure, attempts=before.attempts + 1 if before else 1)
            self._keep(row_id, counted)
            return counted

    def decided(self, row_id: str, failure: Failure) -> None:
        """Store the failure with the policy's decision."""
        with self._lock:
            self._let_go(row_id)
            self._keep(row_id, failure)

    def of(self, row_id: str) -> Failure | None:
        return self._by_row.get(row_id)

    def final(self, row_id: str) -> Failure | None:
        """The failure after which the message must not be handled again at once; else None."""
        failed = self._by_row.get(row_id)
        return failed if failed and not isinstance(failed.action, Immediately) else None

    def conflicted(self, row_id: str) -> int:
        """Count a conflict with another transaction, which is no failure; return how many there were."""
        with self._lock:
            count = self._conflicts[row_id] = self._conflicts.pop(row_id, 0) + 1
            while len(self._conflicts) > self._most:
                self._conflicts.popitem(last=False)
        return count

    def forget(self, row_id: str) -> None:
        self._conflicts.pop(row_id, None)
        if row_id in self._by_row:
            with self._lock:
                self._let_go(row_id)

    def _keep(self, row_id: str, failure: Failure) -> None:
        """Add, dropping the oldest beyond the limits; the newest always stays."""
        self._by_row[row_id] = failure
        self._characters += _size(failure)
        while len(self._by_row) > self._most or self._characters > self._most_characters:
            oldest = next(iter(self._by_row))
            if oldest == row_id:
                break
            self._let_go(oldest)

    def _let_go(self, row_id: str) -> Failure | None:
        failure = self._by_row.pop(row_id, None)
        self._characters -= _size(failure) if failure else 0
        return failure


def _size(failure: Failure) -> int:
    return len(failure.message) + len(failure.stack_trace)

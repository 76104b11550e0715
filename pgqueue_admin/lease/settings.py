"""A lease worker's settings: one immutable value, all faults reported at once, applied while it runs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pgqueue_admin.transport.settings import SettingsRefused

OnLockExpired = Literal["archive", "release"]

_ON_LOCK_EXPIRED = ("archive", "release")
LONGEST = 86_400.0


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """How a worker claims, holds and ends messages."""

    # Length of a lock, renewed halfway while a handler works.
    lock_seconds: float = 60.0
    # Seconds after which a handler's lock is no longer renewed; 0: never renewed; None: as long as it works.
    renewed_for: float | None = None
    # Messages in flight at once. Default: the processors, at least 2.
    concurrency: int = max(2, os.cpu_count() or 2)
    # Seconds before each retry, as many retries as entries; then the message has failed.
    retry_after: tuple[float, ...] = (10.0, 60.0, 300.0)
    # False: a success is deleted without a row in the archive.
    archive_success: bool = True
    # `archive`, or `release`: the message comes back, as often as there are retries.
    on_lock_expired: OnLockExpired = "archive"
    # Seconds between two looks without a NOTIFY, and between two for expired locks.
    look_every: float = 60.0

    @property
    def releases(self) -> int:
        """Up to which attempt an expired lock releases the message."""
        return len(self.retry_after) if self.on_lock_expired == "release" else 0

    def checked(self) -> "LeaseSettings":
        """Return itself. Raises SettingsRefused."""
        if faults := list(self._faults()):
            raise SettingsRefused(faults)
        return self

    def _faults(self) -> Iterator[str]:
        if not 0.1 <= self.lock_seconds <= LONGEST:
            yield f"lock_seconds is {self.lock_seconds:g} s: it must be from 0.1 s to a day."
        if self.renewed_for is not None and not 0 <= self.renewed_for <= 365 * LONGEST:
            yield f"renewed_for is {self.renewed_for:g} s: it must be 0 or more, or None for no limit."
        if self.concurrency < 1:
            yield f"concurrency is {self.concurrency}: it must be 1 or more. To claim nothing, pause the worker."
        if not all(0 <= seconds <= 365 * LONGEST for seconds in self.retry_after):
            yield f"retry_after is {self.retry_after}: each must be from 0 s to a year."
        if self.on_lock_expired not in _ON_LOCK_EXPIRED:
            yield f"on_lock_expired is {self.on_lock_expired!r}: it must be one of {', '.join(_ON_LOCK_EXPIRED)}."
        if not 0.1 <= self.look_every <= LONGEST:
            yield f"look_every is {self.look_every:g} s: it must be from 0.1 s to a day."

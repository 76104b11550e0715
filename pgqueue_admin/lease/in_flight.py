"""Messages that a worker has claimed and not ended."""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from pgqueue_admin.lease.message import LeasedMessage


@dataclass(slots=True)
class HeldLease:
    """Times are monotonic. ``renew_at``: None if it is no longer renewed."""

    lease: LeasedMessage
    since: float
    renew_at: float | None


class LeasesInFlight:
    """``changed`` is notified when a message is added or removed, and when renewal stops."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._held: dict[str, HeldLease] = {}  # by token: a message may return while its previous handler still runs

    def add(self, leases: Iterable[LeasedMessage], claimed_at: float, lock_seconds: float) -> None:
        with self.changed:
            for lease in leases:
                self._held[lease.token] = HeldLease(lease, claimed_at, claimed_at + lock_seconds / 2)
            self.changed.notify_all()

    def remove(self, lease: LeasedMessage) -> None:
        with self.changed:
            self._held.pop(lease.token, None)
            self.changed.notify_all()

    def __len__(self) -> int:
        return len(self._held)

    def all(self) -> list[LeasedMessage]:
        with self.changed:
            return [held.lease for held in self._held.values()]

    def to_renew(self) -> list[HeldLease]:
        now = time.monotonic()
        with self.changed:
            return [each for each in self._held.values() if each.renew_at is not None and each.renew_at <= now]

    def rest(self, most: float) -> None:
        """Wait until the next renewal is due or something changes."""
        with self.changed:
            at = min((each.renew_at for each in self._held.values() if each.renew_at is not None), default=None)
            self.changed.wait(most if at is None else max(0.0, min(most, at - time.monotonic())))

    def drain(self, seconds: float) -> bool:
        """Wait until all messages have ended. False: timed out."""
        with self.changed:
            return self.changed.wait_for(lambda: not self._held, max(0.0, seconds))

"""Messages that a worker has claimed and not ended, and when to renew their locks."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pgqueue_admin.lease.message import LeasedMessage
from pgqueue_admin.lease.queue import LeaseQueue
from pgqueue_admin.lease.settings import LeaseSettings
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker


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


# Locks of slow handlers' messages are renewed halfway through the lock time.
log = logging.getLogger("pgqueue_admin.lease")

AT_MOST = 3600.0


class Renewal:
    """Runs in its own thread, so that no handler or claim delays it."""

    def __init__(
        self,
        queue: LeaseQueue,
        in_flight: LeasesInFlight,
        settings: Callable[[], LeaseSettings],
        breaker: CircuitBreaker,
    ):
        self._queue, self._in_flight, self._settings, self._breaker = queue, in_flight, settings, breaker
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{queue.name} renewal", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        with self._in_flight.changed:
            self._in_flight.changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                if due := self._in_flight.to_renew():
                    self._renew(due)
                    self._breaker.succeeded()
            except Exception as error:
                if not self._ended.is_set():
                    self._ended.wait(self._breaker.failed(error))
            else:
                self._in_flight.rest(AT_MOST)

    def _renew(self, due: list[HeldLease]) -> None:
        settings, now = self._settings(), time.monotonic()
        for each in due:
            if settings.renewed_for is not None and now - each.since >= settings.renewed_for:
                each.renew_at = None
                log.warning("%r takes longer than %g s: its lock is renewed no more", each.lease, settings.renewed_for)
        kept = [each for each in due if each.renew_at is not None]
        if not kept:
            return
        held = self._queue.renew_many([each.lease for each in kept], settings.lock_seconds)
        for each in kept:
            if each.lease.token in held:
                each.renew_at = now + settings.lock_seconds / 2
            else:
                each.renew_at = None
                log.warning("%r is not locked by us any more: its handler goes on in vain", each.lease)

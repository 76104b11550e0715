"""A worker's claim loop: claim messages for all free slots at once, and end expired locks."""

import time
from collections.abc import Callable

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.lease_store import Outlook
from pgqueue_admin.lease import expiry
from pgqueue_admin.lease.in_flight import LeasesInFlight
from pgqueue_admin.lease.queue import LeaseQueue, Leases
from pgqueue_admin.lease.settings import LeaseSettings
from pgqueue_admin.lease.slots import Slots
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker

CHANNEL = "new_message"
AT_LEAST = 1.0  # seconds between two looks while another worker claims what is due


class ClaimLoop:
    """Implements listener.ListenerWork."""

    def __init__(
        self,
        queue: LeaseQueue,
        in_flight: LeasesInFlight,
        settings: Callable[[], LeaseSettings],
        breaker: CircuitBreaker,
        slots: Slots,
    ):
        self._queue, self._in_flight, self._settings, self._breaker = queue, in_flight, settings, breaker
        self._slots = slots
        self.paused = False
        self.claims = 0
        self.begun()

    def begun(self) -> None:
        self._more, self._look_at = False, 0.0

    def run_once(self, session: Connection, has_heard: bool) -> float:
        leases = self._queue.on(session)
        self._more |= has_heard
        if time.monotonic() >= self._look_at:
            self._look(leases)
        if self._more and not self.paused and (free := self._slots.free):
            self._claim(leases, free)
            return 0.0
        return self._look_at - time.monotonic()

    @property
    def wants_to_hear(self) -> bool:
        """False while messages are known but no slot is free for them."""
        return not (self._more or self.paused)

    def _claim(self, leases: Leases, free: int) -> None:
        settings, now = self._settings(), time.monotonic()
        self.claims += 1
        claimed = leases.claim(free, settings.lock_seconds, releases=settings.releases)
        self._in_flight.add(claimed, now, settings.lock_seconds)
        for lease in claimed:
            self._slots.take(lease)
        self._more = len(claimed) == free
        if not self._more:
            ahead = leases.outlook()  # due but not claimed: another worker is claiming it
            self._look_at = min(self._look_at, time.monotonic() + (AT_LEAST if ahead.can_claim else _next_due(ahead)))
        self._breaker.succeeded()

    def _look(self, leases: Leases) -> None:
        """End expired locks and check for messages to claim; a single statement if there are neither."""
        ahead = leases.outlook()
        if ahead.can_expire and expiry.expire(leases).released:
            ahead = leases.outlook()
        self._more |= ahead.can_claim
        self._look_at = time.monotonic() + min(self._settings().look_every, _next_due(ahead))
        self._breaker.succeeded()


def _next_due(ahead: Outlook) -> float:
    """Seconds until a message becomes due that nobody can claim yet; infinity if none is known."""
    return float("inf") if ahead.claim_in is None or ahead.can_claim else max(ahead.claim_in, AT_LEAST)

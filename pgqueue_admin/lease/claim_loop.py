"""What a worker does whenever there may be something: claim for all free slots at once, and end expired locks."""

import time
from collections.abc import Callable

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.lease_store import Outlook
from pgqueue_admin.lease import upkeep
from pgqueue_admin.lease.in_flight import LeasesInFlight
from pgqueue_admin.lease.queue import LeaseQueue, Leases
from pgqueue_admin.lease.settings import LeaseSettings
from pgqueue_admin.lease.slots import Slots
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker

CHANNEL = "new_message"
AT_LEAST = 1.0  # second between two looks at what is due and somebody else is just taking


class ClaimLoop:
    """Implements listener.Work."""

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
        """Not while it knows of messages, and has no free slot for them."""
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
            ahead = leases.outlook()  # what is due and was not got somebody else is just taking
            self._look_at = min(self._look_at, time.monotonic() + (AT_LEAST if ahead.can_claim else _next_due(ahead)))
        self._breaker.succeeded()

    def _look(self, leases: Leases) -> None:
        """Expire what is over, and see what is to be claimed: one statement where there is neither."""
        ahead = leases.outlook()
        if ahead.can_expire and upkeep.expire(leases).released:
            ahead = leases.outlook()
        self._more |= ahead.can_claim
        self._look_at = time.monotonic() + min(self._settings().look_every, _next_due(ahead))
        self._breaker.succeeded()


def _next_due(ahead: Outlook) -> float:
    """In how many seconds there is something that nobody can have yet; infinity: nothing is known to come."""
    return float("inf") if ahead.claim_in is None or ahead.can_claim else max(ahead.claim_in, AT_LEAST)

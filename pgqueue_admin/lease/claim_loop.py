"""The one thread of a worker that listens, claims for all free slots at once, and looks after expired locks."""

import logging
import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.lease_store import Outlook
from pgqueue_admin.lease import upkeep
from pgqueue_admin.lease.in_hand import InHand
from pgqueue_admin.lease.queue import LeaseQueue, Leases
from pgqueue_admin.lease.settings import LeaseSettings
from pgqueue_admin.lease.slots import Handle, Slots
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.sessions.reconnecting_session import ReconnectingSession

log = logging.getLogger("pgqueue_admin.lease")

CHANNEL = "new_message"
AT_LEAST = 1.0  # second between two looks at what is due and somebody else is just taking


class ClaimLoop:
    """``more``: there may be something to claim. However many NOTIFY came until then, one claim answers them."""

    def __init__(
        self,
        queue: LeaseQueue,
        in_hand: InHand,
        settings: Callable[[], LeaseSettings],
        breaker: CircuitBreaker,
        handle: Handle,
    ):
        self._queue, self._in_hand, self._settings, self._breaker = queue, in_hand, settings, breaker
        self.slots = Slots(settings().concurrency, queue.name, handle, self.poke)
        self._session = ReconnectingSession(queue.opening.short)
        self._poked, self._poker = os.pipe()
        self._pipe: tuple[int, ...] = (self._poked, self._poker)
        os.set_blocking(self._poker, False)
        self._poking = threading.Lock()
        self.paused = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{queue.name} claims", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def poke(self) -> None:
        """A slot is free, settings have changed, or it is to stop."""
        with self._poking, suppress(BlockingIOError):  # a full pipe has poked enough
            if self._pipe:
                os.write(self._poker, b"x")

    def stop(self) -> None:
        """Claims nothing more from when this returns."""
        self._stopping.set()
        self.poke()
        self._thread.join(AT_LEAST)
        self._session.cut()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._serve(self._session.fresh())
                except Exception as error:
                    if not self._stopping.is_set():
                        self._stopping.wait(self._breaker.failed(error))
        finally:
            self._session.close()
            with self._poking:  # what has its number afterwards is somebody else's
                for end in self._pipe:
                    os.close(end)
                self._pipe = ()

    def _serve(self, session: Connection) -> None:
        session.listen(CHANNEL)
        more, look_at = False, 0.0  # at once: what came while nobody listened was not heard
        poll = select.poll()
        for file in (self._poked, session.fileno()):
            poll.register(file, select.POLLIN)
        while not self._stopping.is_set():
            if time.monotonic() >= look_at:
                ahead = self._look(self._queue.on(session))
                more |= ahead.can_claim
                look_at = time.monotonic() + min(self._settings().look_every, _next_due(ahead))
            # all, also those that came with answers: each that is left behind would cost a claim of its own
            more |= bool(list(session.notifications(timeout=0)))
            if more and not self.paused and (free := self.slots.free):
                more = self._claim(session, free)
                if not more:
                    ahead = self._queue.on(
                        session
                    ).outlook()  # what is due and was not got somebody else is just taking
                    look_at = min(look_at, time.monotonic() + (AT_LEAST if ahead.can_claim else _next_due(ahead)))
                self._breaker.succeeded()
                continue
            if self._poked in dict(poll.poll(max(0.0, min(session.ask_every, look_at - time.monotonic())) * 1000)):
                os.read(self._poked, 4096)

    def _claim(self, session: Connection, free: int) -> bool:
        """Whether there may be more."""
        settings, now = self._settings(), time.monotonic()
        leases = self._queue.on(session).claim(free, settings.lock_seconds, releases=settings.releases)
        self._in_hand.add(leases, now, settings.lock_seconds)
        for lease in leases:
            self.slots.take(lease)
        return len(leases) == free

    def _look(self, leases: Leases) -> Outlook:
        """Expire what is over, and see what is to be claimed: one statement where there is neither."""
        ahead = leases.outlook()
        if ahead.can_expire and upkeep.expire(leases).released:
            ahead = leases.outlook()
        return ahead


def _next_due(ahead: Outlook) -> float:
    """In how many seconds there is something that nobody can have yet; infinity: nothing is known to come."""
    return float("inf") if ahead.claim_in is None or ahead.can_claim else max(ahead.claim_in, AT_LEAST)

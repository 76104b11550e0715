"""Renews the locks of slow handlers' messages, halfway through the lock time."""

import logging
import threading
import time
from collections.abc import Callable

from pgqueue_admin.lease.in_flight import HeldLease, LeasesInFlight
from pgqueue_admin.lease.queue import LeaseQueue
from pgqueue_admin.lease.settings import LeaseSettings
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker

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

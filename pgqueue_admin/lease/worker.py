"""A lease queue worker: runs handlers for claimed messages in its own threads."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import NamedTuple

from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, TableMissing
from pgqueue_admin.lease import claim_loop, dead_loop
from pgqueue_admin.lease.claim_loop import ClaimLoop
from pgqueue_admin.lease.dead_loop import DeadLoop
from pgqueue_admin.lease.errors import LeaseQueueMissing
from pgqueue_admin.lease.handlers import HandlerContext, LeaseHandlers
from pgqueue_admin.lease.in_flight import LeasesInFlight
from pgqueue_admin.lease.lease_processor import LeaseProcessor
from pgqueue_admin.lease.listener import Listener
from pgqueue_admin.lease.message import LeasedMessage
from pgqueue_admin.lease.queue import LeaseQueue
from pgqueue_admin.lease.renewal import Renewal
from pgqueue_admin.lease.settings import LeaseSettings
from pgqueue_admin.lease.slots import Slots
from pgqueue_admin.osproc import ctrl_c
from pgqueue_admin.transport.ports import Observer, Unobserved
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreakers
from pgqueue_admin.transport.sessions.session_opening import ANSWER_SECONDS


class ClaimFigures(NamedTuple):
    """Since the start: number of claims, and of NOTIFY wake-ups."""

    claims: int
    wake_ups: int


# The parts of a running worker, created at each start.
class RunningWorker:
    def __init__(
        self, queue: LeaseQueue, context: HandlerContext, breakers: CircuitBreakers, in_flight: LeasesInFlight
    ):
        name, settings = queue.name, context.settings
        self._queue, self._settings, self._in_flight = queue, settings, in_flight
        self._given_up = threading.Event()
        self._processor = LeaseProcessor(queue, context, breakers.new("Ending lease messages"), self._given_up)
        self._slots = Slots(settings().concurrency, name, self._handle, self._poke)
        claiming = breakers.new("Claiming lease messages")
        self._claims = ClaimLoop(queue, in_flight, settings, claiming, self._slots)
        self._renewal = Renewal(queue, in_flight, settings, breakers.new("Renewing locks"))
        giving = breakers.new("Giving dead lease messages to their handlers")
        self._dead = DeadLoop(queue.store, context, giving)
        self._claiming = self._giving = None
        if context.handlers.handles_messages:
            self._claiming = Listener(f"{name} claims", claim_loop.CHANNEL, queue, self._claims, claiming)
        if context.handlers.handles_dead:
            self._giving = Listener(f"{name} dead", dead_loop.CHANNEL, queue, self._dead, giving)

    def start(self, paused: bool) -> None:
        self._claims.paused = self._dead.paused = paused
        self._renewal.start()
        for listener in self._listeners:
            listener.start()

    def pause(self, paused: bool) -> None:
        self._claims.paused = self._dead.paused = paused
        self._poke()

    @property
    def figures(self) -> ClaimFigures:
        return ClaimFigures(self._claims.claims, self._claiming.woken if self._claiming else 0)

    def apply(self) -> None:
        """The settings have changed."""
        self._slots.size = self._settings().concurrency
        self._poke()

    def stop(self, seconds: float) -> bool:
        """Return whether everything in flight is done. The rest is released if the settings say so."""
        deadline = time.monotonic() + seconds
        for listener in self._listeners:
            listener.ask_to_stop()
        if self._claiming:
            self._claiming.stop()
        is_done = self._in_flight.drain(deadline - time.monotonic())
        self._given_up.set()
        self._renewal.stop()
        self._slots.close()
        if not is_done and self._settings().on_lock_expired == "release":
            with suppress(DatabaseError):
                for lease in self._in_flight.all():
                    self._queue.release(lease)
        return (not self._giving or self._giving.wait(deadline - time.monotonic())) and is_done

    def _handle(self, slot: int, lease: LeasedMessage) -> None:
        try:
            self._processor.handle(slot, lease)
        finally:
            self._in_flight.remove(lease)

    def _poke(self) -> None:
        for listener in self._listeners:
            listener.poke()

    @property
    def _listeners(self) -> list[Listener]:
        return [listener for listener in (self._claiming, self._giving) if listener]


log = logging.getLogger("pgqueue_admin.lease")


class LeaseWorker:
    """``run()``, or ``start()`` and ``stop()``. Raises SettingsRefused with all faults at once."""

    def __init__(
        self,
        name: str,
        dsn: str,
        handlers: LeaseHandlers,
        *,
        settings: LeaseSettings | None = None,
        observer: Observer | None = None,
        before_each: Callable[[], None] | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ):
        """``name``: recorded in the archive as the handler. ``before_each``: called in the handler's thread before it.
        ``answer_seconds``: as of ``LeaseQueue``."""
        self.name, self.handlers = name, handlers
        self.observer = observer or Unobserved()
        self._before_each = before_each
        self.settings = (settings or LeaseSettings()).checked()
        self.queue = LeaseQueue(dsn, name=name, answer_seconds=answer_seconds)
        self.breakers = CircuitBreakers()
        self.paused = False
        self._in_flight = LeasesInFlight()
        self._running: RunningWorker | None = None
        self._ended = threading.Event()
        self._stopping = threading.RLock()
        self._handles = threading.local()

    def start(self) -> None:
        """Claim in its own threads; wait for a database that is down.

        Raises LeaseQueueMissing, SessionsShared behind a pooler in transaction mode, and RuntimeError if it already
        runs.
        """
        if self._running:
            raise RuntimeError(f"{self.name} works already: stop it first")
        self._check_tables()
        self._ended.clear()
        context = HandlerContext(self.handlers, self._settings, self.observer, self._handles_here)
        self._running = RunningWorker(self.queue, context, self.breakers, self._in_flight)
        self._running.start(self.paused)
        log.info("Lease worker %s handles %s", self.name, ", ".join(self.handlers.kinds) or "whatever comes")

    def run(self) -> None:
        """``start`` and block until ``stop`` is called elsewhere, or Ctrl-C."""
        with ExitStack() as ending, suppress(KeyboardInterrupt):
            with ctrl_c.held_back():  # the first messages may be handled before start returns
                self.start()
                ending.callback(self.stop)
            self.wait()

    def wait(self) -> None:
        """Block until it is stopped."""
        self._ended.wait()

    def stop(self, drain_seconds: float = 30) -> bool:
        """Claim nothing more, finish what is in flight. False: some messages were not done in time.

        They are released if ``on_lock_expired`` says so, else their locks expire. Raises RuntimeError in a handler.
        """
        if getattr(self._handles, "here", False):
            raise RuntimeError(f"a handler of {self.name} cannot wait for its own end: call stop() in another thread")
        with self._stopping:
            running, self._running = self._running, None
            drained = running.stop(drain_seconds) if running else True
            self.queue.close()
            self._ended.set()
        return drained

    def pause(self) -> None:
        """Claim nothing more, finish what is in flight; also before ``start``."""
        self._set_paused(True)

    def resume(self) -> None:
        self._set_paused(False)

    def _set_paused(self, paused: bool) -> None:
        self.paused = paused
        if self._running:
            self._running.pause(paused)

    def apply(self, settings: LeaseSettings) -> None:
        """Apply new settings while it runs. Raises SettingsRefused."""
        self.settings = settings.checked()
        if self._running:
            self._running.apply()

    @property
    def in_flight(self) -> int:
        """Number of messages being handled now."""
        return len(self._in_flight)

    @property
    def claim_figures(self) -> ClaimFigures:
        """Since its last start; zero while it is stopped."""
        return self._running.figures if self._running else ClaimFigures(0, 0)

    def _check_tables(self) -> None:
        try:
            self.queue.opening.insist_on_its_own()
            if not self.queue.is_installed():
                raise LeaseQueueMissing
            if self.handlers.handles_dead:
                with self.queue.opening.short() as session:
                    self.queue.store.ask_for_dead(session)
        except TableMissing:
            raise LeaseQueueMissing from None
        except DatabaseDown as error:
            log.warning("Lease worker %s waits for its database: %s", self.name, error)

    def _handles_here(self) -> None:
        """Mark this thread as running a handler."""
        self._handles.here = True
        if self._before_each:
            self._before_each()

    def _settings(self) -> LeaseSettings:
        """The current settings: they may change while it runs."""
        return self.settings

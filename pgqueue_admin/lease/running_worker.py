"""What a worker has while it works: made anew at each start."""

import threading
import time
from contextlib import suppress

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.lease import claim_loop, dead_loop
from pgqueue_admin.lease.claim_loop import ClaimLoop
from pgqueue_admin.lease.dead_loop import DeadLoop
from pgqueue_admin.lease.handler_context import HandlerContext
from pgqueue_admin.lease.in_hand import InHand
from pgqueue_admin.lease.lease_processor import LeaseProcessor
from pgqueue_admin.lease.listener import Listener
from pgqueue_admin.lease.message import LeasedMessage
from pgqueue_admin.lease.queue import LeaseQueue
from pgqueue_admin.lease.renewal import Renewal
from pgqueue_admin.lease.slots import Slots
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreakers


class RunningWorker:
    def __init__(self, queue: LeaseQueue, context: HandlerContext, breakers: CircuitBreakers, in_hand: InHand):
        name, settings = queue.name, context.settings
        self._queue, self._settings, self._in_hand = queue, settings, in_hand
        self._given_up = threading.Event()
        self._processor = LeaseProcessor(queue, context, breakers.new("Ending lease messages"), self._given_up)
        self._slots = Slots(settings().concurrency, name, self._handle, self._poke)
        claiming = breakers.new("Claiming lease messages")
        self._claims = ClaimLoop(queue, in_hand, settings, claiming, self._slots)
        self._renewal = Renewal(queue, in_hand, settings, breakers.new("Renewing locks"))
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

    def apply(self) -> None:
        """There are new settings."""
        self._slots.size = self._settings().concurrency
        self._poke()

    def stop(self, seconds: float) -> bool:
        """Whether all that was in hand is done. What is not is released where the settings say so."""
        deadline = time.monotonic() + seconds
        for listener in self._listeners:
            listener.ask_to_stop()
        if self._claiming:
            self._claiming.stop()
        is_done = self._in_hand.drain(deadline - time.monotonic())
        self._given_up.set()
        self._renewal.stop()
        self._slots.close()
        if not is_done and self._settings().on_lock_expired == "release":
            with suppress(DatabaseError):
                for lease in self._in_hand.all():
                    self._queue.release(lease)
        return (not self._giving or self._giving.wait(deadline - time.monotonic())) and is_done

    def _handle(self, slot: int, lease: LeasedMessage) -> None:
        try:
            self._processor.handle(slot, lease)
        finally:
            self._in_hand.remove(lease)

    def _poke(self) -> None:
        for listener in self._listeners:
            listener.poke()

    @property
    def _listeners(self) -> list[Listener]:
        return [listener for listener in (self._claiming, self._giving) if listener]

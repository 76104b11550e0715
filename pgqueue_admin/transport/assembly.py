"""Puts the parts together that receive for an endpoint."""

from dataclasses import dataclass
from functools import partial

from pgqueue_admin.transport.client import Client
from pgqueue_admin.transport.delayed.forwarding import Forwarding
from pgqueue_admin.transport.handling.attempt import Attempts, call_handlers, call_traced
from pgqueue_admin.transport.handling.audit import Audit
from pgqueue_admin.transport.handling.handlers import Handlers
from pgqueue_admin.transport.handling.processing import Processing
from pgqueue_admin.transport.handling.replies import Replies
from pgqueue_admin.transport.ports import Exhausted, Observer
from pgqueue_admin.transport.receiving.held import Held
from pgqueue_admin.transport.receiving.low_water import LowWater
from pgqueue_admin.transport.receiving.one_by_one import OneByOne
from pgqueue_admin.transport.receiving.peeking import QueuePeeker
from pgqueue_admin.transport.receiving.receive_modes import MODES, ReceiveMode
from pgqueue_admin.transport.receiving.receive_task import Work
from pgqueue_admin.transport.receiving.receiver import Receiver
from pgqueue_admin.transport.receiving.receivers import OneOfSeveral, Receivers
from pgqueue_admin.transport.receiving.signals import Signals
from pgqueue_admin.transport.receiving.slots import Slot, Slots
from pgqueue_admin.transport.recoverability.exhaustion import Exhaustion
from pgqueue_admin.transport.recoverability.failures import Failures
from pgqueue_admin.transport.recoverability.recovery import Recovery
from pgqueue_admin.transport.sending.outbound import Outbound
from pgqueue_admin.transport.sending.sender import Sender
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.tables.table_queue import TableQueue


@dataclass(frozen=True, slots=True)
class Assembly:
    """From what sends, and what an endpoint has beside it, to what receives."""

    client: Client
    outbound: Outbound
    sender: Sender
    handlers: Handlers
    exhausted: Exhausted | None
    observer: Observer
    replies: Replies

    def receivers(self, paused: bool) -> Receivers:
        queues, several = self.client.queues, len(self.client.queues)
        observers = [OneOfSeveral(self.observer, place, several) for place in range(several)]
        pairs = zip(queues, observers if several > 1 else [self.observer], strict=True)
        return Receivers({queue.address: self._receiver(queue, observer, paused) for queue, observer in pairs})

    def _receiver(self, queue: TableQueue, observer: Observer, paused: bool) -> Receiver:
        client, signals, low_water = self.client, Signals(), LowWater()
        breaker = client.breakers.new(f"Peeking at {queue}")
        peeker = QueuePeeker(queue, client.opening.ours, low_water, breaker)
        slots = Slots(client.settings.concurrency, client.name, client.opening.short, signals.changed)
        work = self._work(queue, observer, signals, low_water)
        return Receiver(client.name, peeker, slots, work, client.settings, signals, paused)

    def _work(self, queue: TableQueue, observer: Observer, signals: Signals, low_water: LowWater) -> Work:
        return Work(
            queue,
            self._processing(queue, Failures()),
            self._mode,
            low_water,
            Held(),
            OneByOne(),
            observer,
            self.client.breakers.new(f"Receiving from {queue}"),
            self._settings,
            signals,
        )

    def _mode(self, slot: Slot, settings: EndpointSettings) -> ReceiveMode:
        return MODES[settings.transaction_mode](slot, self.sender, self.client.subscriptions)

    def _processing(self, queue: TableQueue, failures: Failures) -> Processing:
        recovery = self._recovery(queue, failures)
        attempts = self._attempts(recovery)
        forwarding, replies = recovery.forwarding, self.replies
        return Processing(self.client.name, attempts, recovery, forwarding, failures, self.observer, replies)

    def _attempts(self, recovery: Recovery) -> Attempts:
        client, pipeline = self.client, self.client.pipeline
        return Attempts(
            client.name,
            self.handlers,
            client.serializers,
            self.outbound,
            pipeline,
            pipeline.around(partial(call_traced, pipeline.tracing) if pipeline.tracing else call_handlers),
            Audit(client.name, client.addressing, self._settings),
            self.replies,
            recovery,
        )

    def _recovery(self, queue: TableQueue, failures: Failures) -> Recovery:
        client = self.client
        return Recovery(
            client.name,
            self.handlers.unrecoverable,
            client.pipeline.policy,
            Forwarding(client.addressing),
            Exhaustion(client.addressing, self.exhausted),
            failures,
            self.observer,
            self._settings,
            client.breakers.new(f"Putting away what failed in {queue}"),
        )

    def _settings(self) -> EndpointSettings:
        """As they are at that moment: they are applied while it runs."""
        return self.client.settings

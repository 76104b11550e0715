"""Assembles the receiving parts of an endpoint."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pgqueue_admin.transport.client import Client
from pgqueue_admin.transport.delayed.forwarding import Forwarding
from pgqueue_admin.transport.handling.attempt import MessageHandling, call_handlers, call_traced
from pgqueue_admin.transport.handling.audit import AuditCopies
from pgqueue_admin.transport.handling.callbacks import Callbacks
from pgqueue_admin.transport.handling.handlers import Handlers
from pgqueue_admin.transport.handling.message_processor import MessageProcessor
from pgqueue_admin.transport.ports import Exhausted, Observer, Outbox
from pgqueue_admin.transport.receiving.in_flight import InFlightRows, LowWaterMarks
from pgqueue_admin.transport.receiving.message_pump import EndpointReceivers, IndexedObserver, MessagePump, QueuePeeker
from pgqueue_admin.transport.receiving.pump_state import Signals, SingleReceiveFallback
from pgqueue_admin.transport.receiving.receive_task import ReceiverContext
from pgqueue_admin.transport.receiving.receive_transaction import MODES, ReceiveTransaction
from pgqueue_admin.transport.receiving.receive_with_outbox import ReceiveWithOutbox
from pgqueue_admin.transport.receiving.worker_slots import WorkerSlot, WorkerSlots
from pgqueue_admin.transport.recoverability.dead_lettering import DeadLettering
from pgqueue_admin.transport.recoverability.executor import RecoverabilityExecutor
from pgqueue_admin.transport.recoverability.failure_cache import FailureCache
from pgqueue_admin.transport.sending.dispatcher import Dispatcher
from pgqueue_admin.transport.sending.message_factory import MessageFactory
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.tables.table_queue import TableQueue


@dataclass(frozen=True, slots=True)
class Wiring:
    """Builds receivers from an endpoint's sending parts, handlers and ports."""

    client: Client
    outbound: MessageFactory
    sender: Dispatcher
    handlers: Handlers
    exhausted: Exhausted | None
    observer: Observer
    replies: Callbacks
    outbox: Callable[[], Outbox | None]

    def receivers(self, paused: bool) -> EndpointReceivers:
        queues, several = self.client.queues, len(self.client.queues)
        observers = [IndexedObserver(self.observer, place, several) for place in range(several)]
        pairs = zip(queues, observers if several > 1 else [self.observer], strict=True)
        return EndpointReceivers({queue.address: self._receiver(queue, observer, paused) for queue, observer in pairs})

    def handling(self) -> MessageHandling:
        """The handling of its messages, apart from any receive."""
        return self._attempts(self._recovery(self.client.queue, FailureCache()))

    def _receiver(self, queue: TableQueue, observer: Observer, paused: bool) -> MessagePump:
        client, signals, low_water = self.client, Signals(), LowWaterMarks()
        breaker = client.breakers.new(f"Peeking at {queue}")
        peeker = QueuePeeker(queue, client.opening.ours, low_water, breaker)
        slots = WorkerSlots(client.settings.concurrency, client.name, client.opening.short, signals.changed)
        work = self._work(queue, observer, signals, low_water)
        return MessagePump(client.name, peeker, slots, work, client.settings, signals, paused)

    def _work(
        self, queue: TableQueue, observer: Observer, signals: Signals, low_water: LowWaterMarks
    ) -> ReceiverContext:
        return ReceiverContext(
            queue,
            self._processing(queue, FailureCache()),
            self._transaction,
            low_water,
            InFlightRows(),
            SingleReceiveFallback(),
            observer,
            self.client.breakers.new(f"Receiving from {queue}"),
            self._settings,
            signals,
        )

    def _transaction(self, slot: WorkerSlot, settings: EndpointSettings) -> ReceiveTransaction:
        has_outbox = settings.outbox and settings.transaction_mode == "receive_only"  # settings of the task
        if has_outbox and (outbox := self.outbox()):
            return ReceiveWithOutbox(slot, self.sender, self.client.subscriptions, outbox)
        slot.close_storage()
        return MODES[settings.transaction_mode](slot, self.sender, self.client.subscriptions)

    def _processing(self, queue: TableQueue, failures: FailureCache) -> MessageProcessor:
        recovery = self._recovery(queue, failures)
        attempts = self._attempts(recovery)
        forwarding, replies = recovery.forwarding, self.replies
        return MessageProcessor(self.client.name, attempts, recovery, forwarding, failures, self.observer, replies)

    def _attempts(self, recovery: RecoverabilityExecutor) -> MessageHandling:
        client, pipeline = self.client, self.client.pipeline
        return MessageHandling(
            client.name,
            self.handlers,
            client.serializers,
            self.outbound,
            pipeline,
            pipeline.around(partial(call_traced, pipeline.tracing) if pipeline.tracing else call_handlers),
            AuditCopies(client.name, client.addressing, self._settings),
            self.replies,
            recovery,
        )

    def _recovery(self, queue: TableQueue, failures: FailureCache) -> RecoverabilityExecutor:
        client = self.client
        return RecoverabilityExecutor(
            client.name,
            self.handlers.unrecoverable,
            client.pipeline.policy,
            Forwarding(client.addressing),
            DeadLettering(client.addressing, self.exhausted),
            failures,
            self.observer,
            self._settings,
            client.breakers.new(f"Putting away what failed in {queue}"),
        )

    def _settings(self) -> EndpointSettings:
        """The current settings: they can change while it runs."""
        return self.client.settings

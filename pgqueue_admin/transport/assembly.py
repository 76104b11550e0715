"""Puts an endpoint's parts together."""

from functools import partial
from typing import TYPE_CHECKING

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.delayed.due_mover import DueMover
from pgqueue_admin.transport.delayed.forwarding import Forwarding
from pgqueue_admin.transport.handling.attempt import Attempts, call_handlers
from pgqueue_admin.transport.handling.audit import Audit
from pgqueue_admin.transport.handling.processing import Processing
from pgqueue_admin.transport.ports import Observer
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
from pgqueue_admin.transport.wire.composer import Composer

if TYPE_CHECKING:
    from pgqueue_admin.transport.client import Client
    from pgqueue_admin.transport.endpoint import Endpoint

PEEK_TIMEOUT_SECONDS = 30.0  # as the original: a table locked for longer is said, not waited for in silence


def outbound(endpoint: "Client") -> Outbound:
    reply_to = None if endpoint.send_only else str(endpoint.queue)
    composer = Composer(endpoint.name, reply_to, endpoint.serializers)
    return Outbound(endpoint.addressing, composer, not endpoint.send_only, endpoint.pipeline)


def sender(endpoint: "Client") -> Sender:
    return Sender(endpoint.dialect, endpoint.delayed, endpoint.alarm.pull_forward, partial(_tell, endpoint))


def _tell(endpoint: "Client", queues: set[Address], messages: int = 1) -> None:
    if endpoint.settings.notify:
        endpoint.wake_ups.tell(queues, messages)


def mover(endpoint: "Endpoint") -> DueMover:
    breaker = endpoint.breakers.new(f"Moving due messages of {endpoint.delayed}")
    moved = partial(_tell, endpoint, {endpoint.queue.address})
    return DueMover(endpoint.name, endpoint.delayed, endpoint.connect, endpoint.alarm, breaker, moved)


def receivers(endpoint: "Endpoint") -> Receivers:
    several = len(endpoint.queues)
    observers = [OneOfSeveral(endpoint.observer, place, several) for place in range(several)]
    queues = zip(endpoint.queues, observers if several > 1 else [endpoint.observer], strict=True)
    return Receivers({queue.address: _receiver(endpoint, queue, observer) for queue, observer in queues})


def _receiver(endpoint: "Endpoint", queue: TableQueue, observer: Observer) -> Receiver:
    signals = Signals()
    low_water = LowWater()
    breaker = endpoint.breakers.new(f"Peeking at {queue}")
    peeker = QueuePeeker(queue, lambda: endpoint.connect(statement_timeout=PEEK_TIMEOUT_SECONDS), low_water, breaker)
    slots = Slots(endpoint.settings.concurrency, endpoint.name, endpoint.connect, signals.changed)
    work = _work(endpoint, queue, observer, signals, low_water)
    return Receiver(endpoint.name, peeker, slots, work, endpoint.settings, signals, endpoint.paused)


def _work(endpoint: "Endpoint", queue: TableQueue, observer: Observer, signals: Signals, low_water: LowWater) -> Work:
    failures = Failures()
    shared = sender(endpoint)

    def mode(slot: Slot, settings: EndpointSettings) -> ReceiveMode:
        return MODES[settings.transaction_mode](slot, shared, endpoint.subscriptions)

    return Work(
        queue,
        _processing(endpoint, queue, failures),
        mode,
        low_water,
        Held(),
        OneByOne(),
        observer,
        endpoint.breakers.new(f"Receiving from {queue}"),
        lambda: endpoint.settings,
        signals,
    )


def _processing(endpoint: "Endpoint", queue: TableQueue, failures: Failures) -> Processing:
    recovery = _recovery(endpoint, queue, failures)
    attempts = _attempts(endpoint, recovery)
    observer, replies = endpoint.observer, endpoint.replies
    return Processing(endpoint.name, attempts, recovery, recovery.forwarding, failures, observer, replies)


def _attempts(endpoint: "Endpoint", recovery: Recovery) -> Attempts:
    tracing = endpoint.pipeline.tracing
    return Attempts(
        endpoint.name,
        endpoint.handlers,
        endpoint.serializers,
        outbound(endpoint),
        endpoint.pipeline,
        endpoint.pipeline.around(tracing.call_handlers if tracing else call_handlers),
        Audit(endpoint.name, endpoint.addressing, lambda: endpoint.settings),
        endpoint.replies,
        recovery,
    )


def _recovery(endpoint: "Endpoint", queue: TableQueue, failures: Failures) -> Recovery:
    return Recovery(
        endpoint.name,
        endpoint.handlers,
        endpoint.pipeline.policy,
        Forwarding(endpoint.addressing),
        Exhaustion(endpoint.addressing, endpoint.exhausted),
        failures,
        endpoint.observer,
        lambda: endpoint.settings,
        endpoint.breakers.new(f"Putting away what failed in {queue}"),
    )

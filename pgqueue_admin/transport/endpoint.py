"""An endpoint: a queue of its own, handlers for what arrives there, and ways to send."""

import logging
import threading
from contextlib import suppress
from typing import Any

from pgqueue_admin.dialects import Address, Connection, dialect_for
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.transport import addresses, assembly, peek_range
from pgqueue_admin.transport.delayed_table import DelayedTable
from pgqueue_admin.transport.due_mover import Alarm, DueMover
from pgqueue_admin.transport.errors import QueueUnfit
from pgqueue_admin.transport.handlers import Handlers
from pgqueue_admin.transport.kept_session import KeptSession
from pgqueue_admin.transport.message import OutgoingMessage
from pgqueue_admin.transport.ports import Exhausted, Observer, Unobserved
from pgqueue_admin.transport.receiver import Receiver
from pgqueue_admin.transport.sending import Sending
from pgqueue_admin.transport.serializers import Serializers
from pgqueue_admin.transport.settings import EndpointSettings, SettingsRefused
from pgqueue_admin.transport.subscriptions import Subscriptions
from pgqueue_admin.transport.table_queue import TableQueue
from pgqueue_admin.transport.wake_ups import WakeUps

log = logging.getLogger("pgqueue_admin.transport")


class Endpoint(Sending):
    """``run()``, or ``start()`` and ``stop()``; ``send`` and ``publish`` work without either, from any thread.

    Raises SettingsRefused with every fault at once.
    """

    def __init__(
        self,
        name: str,
        dsn: str,
        *,
        settings: EndpointSettings | None = None,
        handlers: Handlers | None = None,
        exhausted: Exhausted | None = None,
        observer: Observer | None = None,
        schema: str | None = None,
        serializers: Serializers | None = None,
    ):
        self.name = name
        self.dialect = dialect_for(dsn)
        self.schema = schema or self.dialect.default_schema
        self.settings = settings or EndpointSettings()
        if faults := [*addresses.name_faults(self.dialect, name), *self.settings.faults()]:
            raise SettingsRefused(faults)
        self.handlers = handlers or Handlers()
        self.exhausted = exhausted
        self.observer = observer or Unobserved()
        self.paused = False
        self.serializers = serializers or Serializers()
        self.queue = TableQueue(self.dialect, Address(self.schema, name))
        self.subscriptions = Subscriptions(self.dialect, self.schema)
        self.dsn = dsn
        super().__init__(assembly.outbound(self))
        self.delayed = DelayedTable(self.dialect, self.queue.address)
        self.alarm = Alarm()
        self.wake_ups = WakeUps(name, self.dialect, self.connect)
        self._sender = assembly.sender(self)
        self._session = KeptSession(self.connect)
        self._lock = threading.Lock()
        self._receiver: Receiver | None = None
        self._mover: DueMover | None = None

    def connect(self, **options: Any) -> Connection:
        """A session of this endpoint's. Raises DatabaseDown."""
        return self.dialect.connect(self.dsn, application_name=f"pgqueue {self.name}", **options)

    # -- tables

    def create_queues(self) -> None:
        """The tables it needs, where they are missing. Schemas are never created."""
        error_queue = addresses.resolve(self.dialect, self.settings.error_queue, self.schema)
        with self._lock:
            self.subscriptions.create(self._session.fresh())
            TableQueue(self.dialect, error_queue).create(self._session.get())
            self.queue.create(self._session.get())
            self.delayed.create(self._session.get())

    def subscribe(self, topic: str) -> None:
        """Get copies of what is published under this type name, or under one that derives from it."""
        with self._lock:
            self.subscriptions.subscribe(self._session.fresh(), self.name, self.queue.address, topic)

    def unsubscribe(self, topic: str) -> None:
        with self._lock:
            self.subscriptions.unsubscribe(self._session.fresh(), self.name, topic)

    # -- receiving

    def start(self) -> None:
        """Receive in threads of its own. A database that is down is waited for; an unfit queue raises QueueUnfit."""
        self._check_queue()
        peek_range.warn(self.name, self.settings)
        self._receiver = assembly.receiver(self)
        self._receiver.start()
        self._mover = assembly.mover(self)
        self._mover.start()
        self._listen()
        log.info("Endpoint %s receives from %s", self.name, self.queue)

    def run(self) -> None:
        """``start`` and block until ``stop`` is called elsewhere, or Ctrl-C."""
        self.start()
        try:
            with suppress(KeyboardInterrupt):
                self.wait()
        finally:
            self.stop()

    def wait(self) -> None:
        """Block until it is stopped."""
        if self._receiver:
            self._receiver.wait()

    def stop(self, drain_seconds: float = 30) -> bool:
        """Finish what is in hand. False: some was not done in time and is back in its queue."""
        receiver, self._receiver = self._receiver, None
        mover, self._mover = self._mover, None
        drained = receiver.stop(drain_seconds) if receiver else True
        if mover:
            mover.stop()
        self.wake_ups.close()
        with self._lock:
            self._session.close()
        return drained

    def pause(self) -> None:
        """Receive nothing more, finish what is in hand; also before ``start``. Sending and due messages go on."""
        self.paused = True
        if self._receiver:
            self._receiver.pause()

    def resume(self) -> None:
        self.paused = False
        if self._receiver:
            self._receiver.resume()

    def apply(self, settings: EndpointSettings) -> None:
        """Take new settings while running; messages in hand finish under the old ones. Raises SettingsRefused."""
        before, self.settings = self.settings, settings.checked()
        if settings.peek_delay != before.peek_delay:
            peek_range.warn(self.name, settings)
        if self._receiver:
            self._receiver.apply(settings)
            self._listen()

    @property
    def in_hand(self) -> int:
        """How many messages are being handled at this moment."""
        return self._receiver.in_hand if self._receiver else 0

    # -- inside

    def _listen(self) -> None:
        if self.settings.notify:
            self.wake_ups.listen(self.queue.address, self._heard)

    def _heard(self) -> None:
        if self._receiver and self.settings.notify:
            self._receiver.wake()

    def _take(self, outgoing: list[OutgoingMessage], immediate: bool) -> None:
        """Outside of handlers there is nothing to wait for: committed when this returns."""
        with self._lock:
            self._sender.dispatch(self._session.fresh(), outgoing)
        self._sender.committed(outgoing)

    def _subscribers(self, topics: list[str]) -> list[Address]:
        with self._lock:
            return self.subscriptions.subscribers(self._session.fresh(), topics)

    def _check_queue(self) -> None:
        try:
            with self._lock:
                faults = self.queue.faults(self._session.fresh())
        except DatabaseDown as error:
            log.warning("Endpoint %s waits for its database: %s", self.name, error)
            return
        if faults:
            raise QueueUnfit("\n".join(faults))

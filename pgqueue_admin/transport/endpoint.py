"""An endpoint: a queue of its own, handlers for what arrives there, and ways to send."""

import itertools
import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from pgqueue_admin.dialects import Address, Connection, dialect_for
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.transport import addresses, assembly, checks, creation, peek_range
from pgqueue_admin.transport import headers as h
from pgqueue_admin.transport.addresses import Addressing
from pgqueue_admin.transport.behaviours import PLAIN, Pipeline
from pgqueue_admin.transport.composer import Types
from pgqueue_admin.transport.delayed_table import DelayedTable
from pgqueue_admin.transport.due_mover import Alarm, DueMover
from pgqueue_admin.transport.handlers import Handlers
from pgqueue_admin.transport.kept_session import KeptSession
from pgqueue_admin.transport.message import OutgoingMessage
from pgqueue_admin.transport.ports import Exhausted, Observer, Unobserved
from pgqueue_admin.transport.receiver import Receiver
from pgqueue_admin.transport.receivers import Receivers
from pgqueue_admin.transport.replies import Asked, Replies
from pgqueue_admin.transport.sending import Sending
from pgqueue_admin.transport.serializers import Serializers
from pgqueue_admin.transport.settings import EndpointSettings, SettingsRefused
from pgqueue_admin.transport.subscriptions import Subscriptions
from pgqueue_admin.transport.table_queue import TableQueue
from pgqueue_admin.transport.wake_ups import WakeUps
from pgqueue_admin.transport.within import Within

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
        schemas: Mapping[str, str] | None = None,
        instance: str = "",
        send_only: bool = False,
        serializers: Serializers | None = None,
        pipeline: Pipeline | None = None,
    ):
        """``schemas``: of single queues, by their name. ``instance``: it has a queue of its own besides."""
        self.name = name
        self.dialect = dialect_for(dsn)
        self.schema = schema or self.dialect.default_schema
        self.addressing = Addressing(self.dialect, self.schema, schemas or {})
        self.settings = settings or EndpointSettings()
        if faults := [*addresses.name_faults(self.dialect, name, instance), *self._faults(self.settings)]:
            raise SettingsRefused(faults)
        self.send_only = send_only
        self.handlers = handlers or Handlers()
        self.exhausted = exhausted
        self.observer = observer or Unobserved()
        self.paused = False
        self.serializers = serializers or Serializers()
        self.pipeline = pipeline or PLAIN
        self.queue = TableQueue(self.dialect, self.addressing.own(name))
        self.instance_queue = TableQueue(self.dialect, self._of_instance(instance)) if instance else None
        self.queues = [self.queue, *([self.instance_queue] if self.instance_queue else [])]
        self.replies = Replies(self.instance_queue.address if self.instance_queue else None)
        self.subscriptions = Subscriptions(self.dialect, self.schema)
        self.dsn = dsn
        super().__init__(assembly.outbound(self))
        self.delayed = DelayedTable(self.dialect, self.queue.address)
        self.alarm = Alarm()
        self.wake_ups = WakeUps(name, self.dialect, self.connect)
        self._sender = assembly.sender(self)
        self._session = KeptSession(self.connect)
        self._lock = threading.Lock()
        self._receivers: Receivers | None = None
        self._mover: DueMover | None = None

    def connect(self, **options: Any) -> Connection:
        """A session of this endpoint's. Raises DatabaseDown."""
        return self.dialect.connect(self.dsn, application_name=f"pgqueue {self.name}", **options)

    # -- tables

    def create_queues(self) -> None:
        """The tables it needs, where they are missing; none for one that only sends. Schemas are never created."""
        with self._lock:
            creation.create(self, self._session.fresh())

    def purge(self, expired_only: bool = False) -> int:
        """Delete what lies in its own queue and nobody has in hand, or of that what has expired; return how many."""
        with self._lock:
            return self.queue.purge(self._session.fresh(), expired_only)

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
        if self.send_only:
            raise SettingsRefused([f"The endpoint {self.name!r} only sends: it has no queue to receive from."])
        self._check_tables()
        peek_range.warn(self.name, self.settings)
        self._receivers = assembly.receivers(self)
        self._receivers.start()
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
        if self._receivers:
            self._receivers.wait()

    def stop(self, drain_seconds: float = 30) -> bool:
        """Finish what is in hand. False: some was not done in time and is back in its queue."""
        receivers, self._receivers = self._receivers, None
        mover, self._mover = self._mover, None
        drained = receivers.stop(drain_seconds) if receivers else True
        if mover:
            mover.stop()
        self.wake_ups.close()
        with self._lock:
            self._session.close()
        return drained

    def pause(self) -> None:
        """Receive nothing more, finish what is in hand; also before ``start``. Sending and due messages go on."""
        self.paused = True
        if self._receivers:
            self._receivers.pause()

    def resume(self) -> None:
        self.paused = False
        if self._receivers:
            self._receivers.resume()

    def apply(self, settings: EndpointSettings) -> None:
        """Take new settings while running; messages in hand finish under the old ones. Raises SettingsRefused."""
        if faults := self._faults(settings):
            raise SettingsRefused(faults)
        before, self.settings = self.settings, settings
        if settings.peek_delay != before.peek_delay:
            peek_range.warn(self.name, settings)
        if self._receivers:
            self._receivers.apply(settings)
            self._listen()

    @property
    def in_hand(self) -> int:
        """How many messages are being handled at this moment."""
        return self._receivers.in_hand if self._receivers else 0

    def ask(
        self,
        destination: str | Address,
        message: Any,
        *,
        type: Types,
        headers: h.Headers | None = None,
        ttbr: timedelta | None = None,
    ) -> Asked:
        """Send, and have the answer come to this instance's own queue: ``ask(…).reply(timeout=5)``.

        Any number may be open at once. Raises ValueError without ``instance=``, and where it does not receive.
        """
        if not self.instance_queue or not self._receivers:
            raise ValueError(f"answers cannot come to {self.name}: give it instance=, and start it")
        asked = self.replies.asked()
        ours: h.Headers = {h.MESSAGE_ID: asked.message_id, h.REPLY_TO_ADDRESS: str(self.instance_queue)}
        self.send(destination, message, type=type, headers={**(headers or {}), **ours}, ttbr=ttbr)
        return asked

    def within(self, connection: Any) -> Sending:
        """Send inside a transaction of yours: a psycopg connection, which is neither committed nor rolled back.

        It must be one of the database that has the queues. Raises TypeError for anything else.
        """
        return Within(self, self._outbound, self._sender, self.dialect.borrow(connection))

    # -- inside

    def _of_instance(self, instance: str) -> Address:
        own = self.queue.address
        return own._replace(table=addresses.table_name(own.table, discriminator=instance))

    def _faults(self, settings: EndpointSettings) -> list[str]:
        named = {"error_queue": settings.error_queue}
        too_long = [addresses.queue_faults(self.addressing, what, queue) for what, queue in named.items() if queue]
        return [*settings.faults(), *itertools.chain.from_iterable(too_long)]

    def _listen(self) -> None:
        if self._receivers and self.settings.notify:
            for queue, receiver in self._receivers.by_queue.items():
                self.wake_ups.listen(queue, partial(self._heard, receiver))

    def _heard(self, receiver: Receiver) -> None:
        if self.settings.notify:
            receiver.wake()

    def _take(self, outgoing: list[OutgoingMessage], immediate: bool) -> None:
        """Outside of handlers there is nothing to wait for: committed when this returns."""
        with self._lock:
            self._sender.dispatch(self._session.fresh(), outgoing)
        self._sender.committed(outgoing)

    def _subscribers(self, topics: list[str]) -> list[Address]:
        with self._lock:
            return self.subscriptions.subscribers(self._session.fresh(), topics)

    def _check_tables(self) -> None:
        try:
            with self._lock:
                faults = checks.faults(self, self._session.fresh())
        except DatabaseDown as error:
            log.warning("Endpoint %s waits for its database: %s", self.name, error)
            return
        checks.insist(faults)

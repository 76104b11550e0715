"""An endpoint: receives from its own queue, calls handlers, and sends."""

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import timedelta
from functools import partial
from typing import Any

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.osproc import ctrl_c
from pgqueue_admin.transport import checks
from pgqueue_admin.transport.client import Client
from pgqueue_admin.transport.delayed.due_message_mover import DueMessageMover
from pgqueue_admin.transport.errors import QueueUnfit
from pgqueue_admin.transport.handling.attempt import MessageHandling
from pgqueue_admin.transport.handling.behaviours import BehaviourChain
from pgqueue_admin.transport.handling.callbacks import Callbacks, PendingRequest
from pgqueue_admin.transport.handling.handlers import Handlers
from pgqueue_admin.transport.ports import EndpointOutbox, Exhausted, Observer, Unobserved
from pgqueue_admin.transport.receiving.message_pump import EndpointReceivers, MessagePump
from pgqueue_admin.transport.sessions.session_opening import ANSWER_SECONDS
from pgqueue_admin.transport.settings import EndpointSettings, SettingsRefused, warn_of_peek_delay
from pgqueue_admin.transport.wire import addresses
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.header_composer import Types
from pgqueue_admin.transport.wire.serializers import Serializers
from pgqueue_admin.transport.wiring import Wiring

log = logging.getLogger("pgqueue_admin.transport")


class Endpoint(Client):
    """``run()``, or ``start()`` and ``stop()``; ``send`` and ``publish`` work without either, from any thread.

    Raises SettingsRefused with all faults.
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
        pipeline: BehaviourChain | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ):
        """Parameters as in ``Client``."""
        self.exhausted = exhausted
        super().__init__(
            name,
            dsn,
            settings=settings,
            schema=schema,
            schemas=schemas,
            instance=instance,
            send_only=send_only,
            serializers=serializers,
            pipeline=pipeline,
            answer_seconds=answer_seconds,
        )
        self.outbox = self._made_outbox(self.settings)
        self.handlers = handlers or Handlers()
        self.observer = observer or Unobserved()
        self.paused = False
        self.replies = Callbacks(self.instance_queue.address if self.instance_queue else None)
        self._receivers: EndpointReceivers | None = None
        self._mover: DueMessageMover | None = None
        self._stopping = threading.RLock()

    def start(self) -> None:
        """Receive in its own threads. Waits for a database that is down; an unfit queue raises QueueUnfit, a pooler in
        transaction mode SessionsShared.

        Raises RuntimeError if it is already started: a second set of receivers would outlive ``stop``.
        """
        self._needs_queue("receive")
        if self._receivers:
            raise RuntimeError(f"{self.name} receives already: stop it first")
        self._check_tables()
        warn_of_peek_delay(self.name, self.settings)
        if self.settings.purge_expired_at_start:
            self._purge_expired()
        if self.outbox:
            self.outbox.start()
        self._receivers = self._wiring().receivers(self.paused)
        self._receivers.start()
        self._mover = self._made_mover()
        self._mover.start()
        self._listen()
        log.info("Endpoint %s receives from %s", self.name, self.queue)

    def handling(self) -> MessageHandling:
        """Make an object that reads and handles messages in the caller's transaction; it receives nothing."""
        return self._wiring().handling()

    def _wiring(self) -> Wiring:
        return Wiring(
            self,
            self._outbound,
            self._sender,
            self.handlers,
            self.exhausted,
            self.observer,
            self.replies,
            lambda: self.outbox,
        )

    def _made_outbox(self, settings: EndpointSettings) -> EndpointOutbox | None:
        wanted = settings.outbox
        if wanted and settings.transaction_mode == "none":
            log.warning("%s uses no outbox: in mode none a message is gone before it is handled.", self.name)
            return None
        return wanted.for_endpoint(self, self._sender) if wanted else None

    def _change_outbox(self, settings: EndpointSettings) -> None:
        """Replace the outbox. Messages in flight finish with the old one and its sessions. Raises SettingsRefused."""
        before, made = self.outbox, self._made_outbox(settings)
        if made and self._receivers:
            try:
                made.start()
            except QueueUnfit as error:
                raise SettingsRefused([error.said]) from error
        self.outbox = made
        if before:
            before.stop()

    def run(self) -> None:
        """``start``, and block until ``stop`` in another thread or Ctrl-C."""
        with ExitStack() as ending, suppress(KeyboardInterrupt):
            with ctrl_c.held_back():  # messages may be in flight before the start is complete
                self.start()
                ending.callback(self.stop)
            self.wait()

    def wait(self) -> None:
        """Block until it is stopped."""
        if self._receivers:
            self._receivers.wait()

    def stop(self, drain_seconds: float = 30) -> bool:
        """Finish messages in flight. False: some were not finished in time, and return to the queue.

        A second call waits for the first. Raises RuntimeError in a handler of this endpoint: it is in flight itself.
        """
        if self._receivers and self._receivers.is_one_of_ours():
            raise RuntimeError(f"a handler of {self.name} cannot wait for its own end: call stop() in another thread")
        with self._stopping:
            receivers, self._receivers = self._receivers, None
            mover, self._mover = self._mover, None
            drained = receivers.stop(drain_seconds) if receivers else True
            if mover:
                mover.stop()
            if self.outbox:
                self.outbox.stop()
            self.wake_ups.close()
            self._sessions.close()
        return drained

    def pause(self) -> None:
        """Stop receiving and finish messages in flight; also before ``start``. Sending and due messages continue."""
        self.paused = True
        if self._receivers:
            self._receivers.pause()

    def resume(self) -> None:
        """Receive again."""
        self.paused = False
        if self._receivers:
            self._receivers.resume()

    def apply(self, settings: EndpointSettings) -> None:
        """Apply new settings while running; messages in flight finish with the old ones. Raises SettingsRefused."""
        if faults := self._faults(settings):
            raise SettingsRefused(faults)
        if (settings.outbox, settings.transaction_mode) != (self.settings.outbox, self.settings.transaction_mode):
            self._change_outbox(settings)
        before, self.settings = self.settings, settings
        if settings.peek_delay != before.peek_delay:
            warn_of_peek_delay(self.name, settings)
        if settings.subscription_table != before.subscription_table:
            self._name_subscriptions()
        if self._receivers:
            self._receivers.apply(settings)
            self._listen()

    @property
    def in_flight(self) -> int:
        """Number of messages in flight."""
        return self._receivers.in_flight if self._receivers else 0

    def ask(
        self,
        destination: str | Address,
        message: Any,
        *,
        type: Types,
        headers: h.Headers | None = None,
        ttbr: timedelta | None = None,
    ) -> PendingRequest:
        """Send a request, and receive the reply in this instance's own queue: ``ask(…).reply(timeout=5)``.

        Any number can be open at once. Raises ValueError without ``instance=``, or if not started.
        """
        if not self.instance_queue or not self._receivers:
            raise ValueError(f"answers cannot come to {self.name}: give it instance=, and start it")
        asked = self.replies.asked()
        ours: h.Headers = {name: asked.message_id for name in (h.MESSAGE_ID, h.CORRELATION_ID)}
        ours[h.REPLY_TO_ADDRESS] = str(self.instance_queue)
        self.send(destination, message, type=type, headers={**(headers or {}), **ours}, ttbr=ttbr)
        return asked

    def transactional_session(self, connection: Any) -> Any:
        """A block in which ``send`` and ``publish`` join your transaction in the outbox's database.

        ``connection`` is the driver's, and is neither committed nor rolled back. After the commit,
        ``session.dispatch()`` sends at once; else the relay of a receiving process does.
        Raises SettingsRefused without an outbox.
        """
        if not self.outbox:
            raise SettingsRefused([f"{self.name} has no outbox: name one in its settings, outbox=Outbox()."])
        return self.outbox.transactional_session(connection, self._outbound, partial(self._take, immediate=True))

    def _faults(self, settings: EndpointSettings) -> list[str]:
        of_outbox = settings.outbox.faults_of(self) if settings.outbox else ()
        return [*super()._faults(settings), *self._loops(settings), *of_outbox]

    def _create(self, session: Connection) -> None:
        super()._create(session)
        if self.outbox:
            self.outbox.create()

    def _loops(self, settings: EndpointSettings) -> Iterator[str]:
        """Faults of queues from which messages would return without end; the error queue only if used."""
        if self.send_only:
            return
        queues = {"audit_queue": settings.audit_queue}
        if settings.on_exhausted == "error_queue" or not self.exhausted:
            queues["error_queue"] = settings.error_queue
        for what, queue in queues.items():
            yield from addresses.own_queue_faults(self.addressing, self._own_addresses(), what, queue)

    def _made_mover(self) -> DueMessageMover:
        breaker = self.breakers.new(f"Moving due messages of {self.delayed}")
        moved = partial(self._tell, {self.queue.address})
        return DueMessageMover(self.name, self.delayed, self.opening.of("mover").ours, self.alarm, breaker, moved)

    def _listen(self) -> None:
        if self._receivers and self.settings.notify:
            for queue, receiver in self._receivers.by_queue.items():
                self.wake_ups.listen(queue, partial(self._heard, receiver))

    def _heard(self, receiver: MessagePump) -> None:
        if self.settings.notify:
            receiver.wake()

    def _purge_expired(self) -> None:
        """Purge at start. If it fails, e.g. on a deadlock, expired messages are dropped when received."""
        try:
            log.info("Endpoint %s has purged %d expired messages of %s", self.name, self.purge(True), self.queue)
        except DatabaseError as error:
            log.warning("Endpoint %s has not purged what is expired in %s: %s", self.name, self.queue, error)

    def _check_tables(self) -> None:
        try:
            self.opening.insist_on_its_own()
            with self._sessions.one() as session:
                faults = checks.faults(self, session)
        except DatabaseDown as error:
            log.warning("Endpoint %s waits for its database: %s", self.name, error)
            return
        checks.insist(faults)

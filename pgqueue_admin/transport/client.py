"""The sending half of an endpoint: its name, queue addresses, sessions and tables."""

import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from pgqueue_admin.dialects import Address, Connection, dialect_for
from pgqueue_admin.transport import installer
from pgqueue_admin.transport.delayed.due_message_mover import MoverAlarm
from pgqueue_admin.transport.delayed.table import DelayedTable
from pgqueue_admin.transport.handling.behaviours import PLAIN, BehaviourChain
from pgqueue_admin.transport.sending.dispatcher import Dispatcher
from pgqueue_admin.transport.sending.message_factory import MessageFactory, Sheet
from pgqueue_admin.transport.sending.send_api import ExternalTransaction, SendApi
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreakers
from pgqueue_admin.transport.sessions.queue_notifications import QueueNotifications, tell_with_commit
from pgqueue_admin.transport.sessions.reconnecting_session import Sessions
from pgqueue_admin.transport.sessions.session_opening import ANSWER_SECONDS, Opening
from pgqueue_admin.transport.settings import EndpointSettings, SettingsRefused
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire import addresses
from pgqueue_admin.transport.wire.addresses import Addressing
from pgqueue_admin.transport.wire.header_composer import HeaderComposer
from pgqueue_admin.transport.wire.message import OutgoingMessage
from pgqueue_admin.transport.wire.serializers import Serializers


class Client(SendApi):
    """Sends from any thread, started or not. Raises SettingsRefused with all faults."""

    def __init__(
        self,
        name: str,
        dsn: str,
        *,
        settings: EndpointSettings | None = None,
        schema: str | None = None,
        schemas: Mapping[str, str] | None = None,
        instance: str = "",
        send_only: bool = False,
        serializers: Serializers | None = None,
        pipeline: BehaviourChain | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ):
        """``schemas``: of single queues, by name. ``instance``: adds a queue for this instance.

        ``answer_seconds``: after so long without an answer, the engine closes the session. Statements of handlers have
        no such limit.
        """
        self.name = name
        self.dsn = dsn
        self.dialect = dialect_for(dsn)
        self.schema = schema or self.dialect.default_schema
        self.addressing = Addressing(self.dialect, self.schema, schemas or {})
        self.settings = settings or EndpointSettings()
        self.send_only = send_only
        self._instance = instance
        unfit = addresses.name_faults(self.dialect, name, instance, send_only)
        if faults := [*unfit, *self._faults(self.settings)]:
            raise SettingsRefused(faults)
        self.serializers = serializers or Serializers()
        self.pipeline = pipeline or PLAIN
        self._name_tables()
        super().__init__(self._made_outbound())
        self.alarm = MoverAlarm()
        self.breakers = CircuitBreakers()
        self.answer_seconds = answer_seconds
        self.opening = Opening(self.dialect, dsn, name, answer_seconds)
        waking = self.breakers.new(f"Waking by NOTIFY for {name}")
        self.wake_ups = QueueNotifications(name, self.dialect, self.opening.of("wake-ups").short, waking)
        self._sender = Dispatcher(self.dialect, self.delayed, self.alarm.pull_forward, self._tell)
        self._sessions = Sessions(self.opening.short)

    def _made_outbound(self) -> MessageFactory:
        composer = HeaderComposer(self.name, None if self.send_only else str(self.queue), self.serializers)
        pipeline = self.pipeline
        return MessageFactory(self.addressing, composer, not self.send_only, pipeline.outgoing, pipeline.tracing)

    def _name_tables(self) -> None:
        self.queues = [TableQueue(self.dialect, address) for address in self._own_addresses()]
        self.queue, self.instance_queue = self.queues[0], self.queues[1] if self._instance else None
        later = self.addressing.own(addresses.table_name(self.name, addresses.DELAYED_SUFFIX))
        self.delayed = DelayedTable(self.dialect, self.queue.address, later)
        self._name_subscriptions()

    def _name_subscriptions(self) -> None:
        self.subscriptions = Subscriptions(self.addressing, self.settings.subscription_table)

    def connect(self, **options: Any) -> Connection:
        """A session for your own SQL, with the search path of the DSN or role. Raises DatabaseDown."""
        return self.opening.long(for_handlers=True, **options)

    def create_queues(self) -> None:
        """Create missing tables; none if send-only. Schemas are never created."""
        if self.send_only:
            return
        with self.opening.long() as session:  # adding a column to a large table takes long
            self._create(session)

    def purge(self, expired_only: bool = False) -> int:
        """Delete its queue's messages that are not in flight, or only the expired ones; return how many."""
        self._needs_queue("purge")
        with self.opening.long() as session:  # it may take long, while others send
            return self.queue.purge(session, expired_only)

    def subscribe(self, topic: str) -> None:
        """Receive events of this type and of derived types."""
        self._needs_queue("subscribe")
        with self._sessions.one() as session:
            self.subscriptions.subscribe(session, self.name, self.queue.address, topic)

    def unsubscribe(self, topic: str) -> None:
        """Receive no more of them; other topics stay."""
        with self._sessions.one() as session:
            self.subscriptions.unsubscribe(session, self.name, topic)

    def within(self, connection: Any) -> SendApi:
        """Send inside your own transaction: a psycopg connection, which is neither committed nor rolled back.

        It must be connected to the queues' database. Raises TypeError for anything else.
        """
        session = self.dialect.borrow(connection)
        tell, at_once = partial(self._tell_with_commit, session), partial(self._take, immediate=True)
        return ExternalTransaction(self._outbound, self._sender, self.subscriptions, session, tell, at_once)

    def _tell(self, queues: set[Address], messages: int = 1) -> None:
        if self.settings.notify:
            self.wake_ups.notify(queues, messages)

    def _tell_with_commit(self, session: Connection, queues: set[Address]) -> None:
        if self.settings.notify:
            tell_with_commit(session, self.dialect, queues)

    def _create(self, session: Connection) -> None:
        queues = [*installer.sent_to(self.addressing, self.settings), *self.queues]
        installer.create(session, self.subscriptions, queues, self.delayed)
        if self.settings.create_message_body_computed_column:
            installer.add_body_columns(session, queues, self.delayed)

    def _own_addresses(self) -> list[Address]:
        """Addresses of its queue and, if any, its instance's queue."""
        of_instance = [addresses.table_name(self.name, discriminator=self._instance)] if self._instance else []
        return [self.addressing.own(table) for table in (self.name, *of_instance)]

    def _faults(self, settings: EndpointSettings) -> list[str]:
        named = {name: getattr(settings, name) for name in ("error_queue", "audit_queue", "subscription_table")}
        too_long = [addresses.queue_faults(self.addressing, what, queue) for what, queue in named.items() if queue]
        return [*settings.faults(), *itertools.chain.from_iterable(too_long)]

    def _needs_queue(self, what: str) -> None:
        if self.send_only:
            raise SettingsRefused([f"The endpoint {self.name!r} only sends: it cannot {what}, it has no queue."])

    def _take(self, outgoing: list[OutgoingMessage], immediate: bool) -> None:
        """Outside of handlers, messages are committed when this returns."""
        with self._sessions.one() as session:
            self._sender.dispatch(session, outgoing)
        self._sender.committed(outgoing)

    def _take_while_made(self, destination: Address, sheets: Iterator[Sheet]) -> list[str]:
        with self._sessions.one() as session:
            return self._sender.stream(session, destination, sheets)

    def _subscribers(self, topics: list[str]) -> list[Address]:
        with self._sessions.one() as session:
            return self.subscriptions.subscribers(session, topics)

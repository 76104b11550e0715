"""The outbox of one endpoint (implements transport.ports.EndpointOutbox)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from pgqueue_admin.dialects import Address, Connection, dialect_for
from pgqueue_admin.dialects.connection import Command
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.outbox import operations
from pgqueue_admin.outbox.coordinator import Coordinator, EnlistedDatabase
from pgqueue_admin.outbox.settings import OutboxSettings
from pgqueue_admin.outbox.transactional_session import TransactionalSession
from pgqueue_admin.outbox.upkeep import OutboxUpkeep
from pgqueue_admin.transport import checks
from pgqueue_admin.transport.client import Client
from pgqueue_admin.transport.sending.dispatcher import Dispatcher
from pgqueue_admin.transport.sending.message_factory import MessageFactory
from pgqueue_admin.transport.sessions.session_opening import Opening
from pgqueue_admin.transport.wire.message import OutgoingMessage

log = logging.getLogger("pgqueue_admin.outbox")


class EndpointOutbox:
    """Its table, its sessions, and the thread that cleans up and relays."""

    def __init__(self, settings: OutboxSettings, client: Client, dispatcher: Dispatcher):
        self.settings, self._client, self._dispatcher = settings, client, dispatcher
        self.is_pessimistic = settings.concurrency == "pessimistic"
        self.is_beside_queues = settings.dsn in ("", client.dsn)
        self.dialect = client.dialect if self.is_beside_queues else dialect_for(settings.dsn)
        own_schema = client.schema if self.is_beside_queues else self.dialect.default_schema
        address = self.dialect.outbox_address(client.name, settings.schema or own_schema, settings.prefix)
        self.store = self.dialect.outbox_store(address)
        # beside the queues, a server crash loses the record together with the message's end
        self.store.is_durable = not self.is_beside_queues
        self.finds_apart = self.store.locks_gaps and settings.isolation_level == "serializable"
        self.opening = (
            client.opening
            if self.is_beside_queues
            else Opening(self.dialect, settings.dsn, client.name, client.answer_seconds)
        )
        self.coordinator = (
            Coordinator(settings, client, self.dialect, address, self.opening) if settings.databases else None
        )
        # a longer wait would hit the session's answer timeout
        self._wait = min(settings.wait, timedelta(seconds=client.answer_seconds / 2))
        self._upkeep: OutboxUpkeep | None = None

    def __str__(self) -> str:
        return self.dialect.canonical(self.store.address)

    def connect(self) -> Connection:
        return self.opening.short(for_handlers=True, isolation=self.settings.isolation_level)

    @property
    def databases(self) -> Mapping[str, EnlistedDatabase]:
        return self.coordinator.databases if self.coordinator else {}

    def deciding(self, id: str, databases: Sequence[str]) -> Command:
        assert self.coordinator, "it has databases"
        return self.coordinator.deciding(id, databases)

    def finding(self, message_id: str) -> Command:
        return self.store.finding(message_id)

    def undispatched(self, row: Any) -> list[OutgoingMessage]:
        if row.dispatched:
            return []
        return operations.load(row.operations, self._client.addressing, self._subscribers)

    def _subscribers(self, topics: list[str]) -> list[Address]:
        with self._client.opening.short() as session:
            return self._client.subscriptions.subscribers(session, topics)

    def storing(self, message_id: str, outgoing: Sequence[OutgoingMessage]) -> Command:
        text = operations.dump(outgoing, self._client.addressing)
        return self.store.storing(message_id, text, self._wait)

    def completing(self, message_id: str, outgoing: Sequence[OutgoingMessage]) -> Command:
        return self.store.completing(message_id, operations.dump(outgoing, self._client.addressing))

    def marking(self, message_id: str) -> Command:
        return self.store.marking(message_id)

    def marking_apart(self, message_id: str) -> list[Command]:
        is_plain = self.settings.isolation_level == "read_committed"
        before = [] if is_plain or not self.store.before_mark else [self.store.before_mark]
        return [*before, self.marking(message_id)]

    def send(self, session: Connection, row: Any) -> list[OutgoingMessage]:
        """Mark a record and send its messages, in the caller's transaction; into another database, before it commits.

        The mark comes first: it fails if another process has sent them meanwhile.
        """
        outgoing = self.undispatched(row)
        self.send_these(session, row.id, outgoing)
        return outgoing

    def send_these(self, session: Connection, record_id: str, outgoing: list[OutgoingMessage]) -> None:
        """As ``send``, with the messages that the record held when read."""
        session.run(*self.marking(record_id))
        if self.is_beside_queues:
            self._dispatcher.dispatch(session, outgoing)
        else:
            with self._client.opening.short() as queues:
                self._dispatcher.dispatch(queues, outgoing)

    def dispatched(self, outgoing: list[OutgoingMessage]) -> None:
        """After the commit: notify receivers."""
        self._dispatcher.committed(outgoing)

    def transactional_session(
        self, connection: Any, outbound: MessageFactory, at_once: Callable[[list[OutgoingMessage]], None]
    ) -> TransactionalSession:
        borrowed = self.dialect.borrow(connection)
        return TransactionalSession(outbound, borrowed, self.storing, self._relay_now, at_once, self._subscribers)

    def relay(self, session: Connection, record_id: str) -> int | None:
        """Send one record; return the number of messages. None: its writer rolled back, or another process sent it."""
        with session.transaction():
            row = session.one(*self.finding(record_id))
            if row is None or row.dispatched:
                return None
            outgoing = self.send(session, row)
        self.dispatched(outgoing)
        return len(outgoing)

    def _relay_now(self, record_id: str) -> None:
        with self.opening.short() as session:
            self.relay(session, record_id)

    def create(self) -> None:
        with self.opening.long() as session:
            self.store.create(session)
            if self.coordinator:
                self.coordinator.create(session)

    def start(self) -> None:
        """A database that is down is only logged: messages wait for it. Raises QueueUnfit if its table is unusable."""
        try:
            with self.opening.ours() as session:
                checks.insist(list(self.store.faults(session, self.settings.isolation_level)))
                if self.coordinator:
                    self.coordinator.check(session)
        except DatabaseDown as error:
            log.warning("The outbox %s waits for its database: %s", self, error)
        if self.settings.clean_every or self.settings.relay_after or self.coordinator:
            breaker = self._client.breakers.new(f"Keeping the outbox {self}")
            self._upkeep = OutboxUpkeep(self, breaker)
            self._upkeep.start()

    def stop(self) -> None:
        upkeep, self._upkeep = self._upkeep, None
        if upkeep:
            upkeep.stop()


# An endpoint's outbox setting, which also creates the outbox (transport.ports.MakeOutbox).
class Outbox(OutboxSettings):
    """``EndpointSettings(transaction_mode="receive_only", outbox=Outbox(concurrency="pessimistic"))``."""

    __slots__ = ()

    def for_endpoint(self, client: Client, dispatcher: Dispatcher) -> EndpointOutbox:
        return EndpointOutbox(self, client, dispatcher)

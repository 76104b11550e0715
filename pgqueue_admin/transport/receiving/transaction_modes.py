"""The transaction modes: what is one commit with the end of a received message (wire sheet 5)."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import ClassVar, Protocol

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.connection import Row
from pgqueue_admin.transport.delayed.forwarding import PASSING
from pgqueue_admin.transport.receiving.message_savepoint import MessageSavepoint
from pgqueue_admin.transport.receiving.worker_slots import WorkerSlot
from pgqueue_admin.transport.sending.dispatcher import Dispatcher
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.unit_of_work import Told
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage


class Task(Protocol):
    """What a mode needs of the receive that it runs."""

    def receive(self, connection: Connection) -> IncomingMessage | None: ...
    def transaction(self, connection: Connection) -> AbstractContextManager[list[Row]]:
        """Begins with the receive; gives its rows."""

    def received(self, rows: list[Row]) -> IncomingMessage | None: ...
    def process(self, message: IncomingMessage) -> Told: ...
    def go_on(self, session: Connection) -> None:
        """Called last in the transaction, which it may commit."""


class Batch(Protocol):
    """As Task, of a receive of several messages."""

    def transaction(self, connection: Connection) -> AbstractContextManager[list[Row]]: ...
    def received_batch(self, rows: list[Row]) -> tuple[IncomingMessage, ...]: ...
    def settle(self, message: IncomingMessage, share: MessageSavepoint) -> Told: ...
    def insist(self, session: Connection) -> None:
        """Raises where a handler rolled the receive back: all of it lies in the queue as before."""

    def go_on(self, session: Connection) -> None: ...


class TransactionMode:
    """One receive on one slot. A subclass says which sends belong to the receive transaction."""

    keeps_failed: ClassVar[bool] = True  # a failed message is back in its queue

    def __init__(self, slot: WorkerSlot, sender: Dispatcher, subscriptions: Subscriptions):
        self._slot = slot
        self._sender = sender
        self._subscriptions = subscriptions
        self._sent: list[OutgoingMessage] = []
        self._share: MessageSavepoint | None = None

    def run(self, task: Task) -> Told | None:
        """Receive and process; None when there was nothing to receive. What it raises rolls the receive back."""
        session = self._slot.session()
        with task.transaction(session) as rows:
            message = task.received(rows)
            told = task.process(message) if message else None
            if message and not self._sent:
                task.go_on(session)
        if self._sent:
            self._sender.committed(self._sent)
        return told

    def run_batch(self, task: Batch) -> list[Told]:
        """As ``run``, for several messages in one transaction."""
        session = self._slot.session()
        self._share = share = MessageSavepoint(self._sent, partial(task.insist, session))
        with task.transaction(session) as rows:
            told = [task.settle(message, share) for message in task.received_batch(rows)]
            if told and not self._sent:
                task.go_on(session)
        self._sender.committed(self._sent)
        return told

    @property
    def lost(self) -> bool:
        return self.keeps_failed and self._slot.receive.lost

    def gives_back(self, error: Exception) -> bool:
        return self.lost or (self.keeps_failed and isinstance(error, PASSING))

    def session_for_handlers(self) -> Connection | None:
        """A savepoint notices where the handler ends the transaction and begins another, which nothing else tells."""
        session = self._session()
        if self._share is None:
            session.guard()
        return session

    def to_give_up(self) -> AbstractContextManager[Connection]:
        return nullcontext(self._session())

    def _session(self) -> Connection:
        """The one that received; in a batch, from here on in the message's savepoint."""
        session = self._slot.receive.held()
        if self._share:
            self._share.begin(session)
        return session

    def dispatch(self, outgoing: list[OutgoingMessage]) -> None:
        self.dispatch_now(outgoing)

    def dispatch_with_receive(self, outgoing: list[OutgoingMessage], last: bool = False) -> None:
        """One commit with the end of the message; ``last``: nothing else follows in it."""
        if outgoing:
            with self.to_give_up() as session:
                self._sender.dispatch(session, outgoing, last)
            self._sent += outgoing

    def dispatch_now(self, outgoing: list[OutgoingMessage]) -> None:
        """Committed at once, on a session of its own."""
        if outgoing:
            with self._slot.send.transaction() as session:
                self._sender.dispatch(session, outgoing)
            self._sender.committed(outgoing)

    def subscribers(self, topics: list[str]) -> list[Address]:
        return self._subscriptions.subscribers(self._slot.send.fresh(), topics)


class SendsAtomicWithReceive(TransactionMode):
    """The default: all that handlers sent and the end of the message are one commit."""

    def dispatch(self, outgoing: list[OutgoingMessage]) -> None:
        self.dispatch_with_receive(outgoing, last=self._share is None)

    def subscribers(self, topics: list[str]) -> list[Address]:
        return self._subscriptions.subscribers(self._session(), topics)


class ReceiveOnly(TransactionMode):
    """What handlers sent is committed first: if the receive then fails, it was sent and is sent again."""


class NoTransaction(TransactionMode):
    """The message is gone before its handler runs: at most once."""

    keeps_failed = False

    def run(self, task: Task) -> Told | None:
        message = task.receive(self._slot.receive.fresh())  # the handler before may have taken long, and it idled
        told = task.process(message) if message else None
        self._sender.committed(self._sent)
        return told

    def session_for_handlers(self) -> None:
        return None

    @contextmanager
    def to_give_up(self) -> Iterator[Connection]:
        with self._slot.receive.transaction() as session:
            yield session


MODES: dict[str, type[TransactionMode]] = {
    "sends_atomic_with_receive": SendsAtomicWithReceive,
    "receive_only": ReceiveOnly,
    "none": NoTransaction,
}

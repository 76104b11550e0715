"""The receive transaction, a class per transaction mode (wire sheet 5)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import ClassVar

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.connection import Command, ReceiveSession, Row
from pgqueue_admin.transport.delayed.forwarding import PASSING
from pgqueue_admin.transport.errors import NotEnlisted
from pgqueue_admin.transport.receiving.message_savepoint import MessageSavepoint
from pgqueue_admin.transport.receiving.worker_slots import WorkerSlot
from pgqueue_admin.transport.sending.dispatcher import Dispatcher
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage

Begun = tuple[ReceiveSession, AbstractContextManager[list[Row]] | None]


class ReceiveTransaction:
    """One receive on one slot. A subclass decides which sends belong to the transaction."""

    keeps_failed: ClassVar[bool] = True  # a failed message returns to its queue
    lends_session: ClassVar[bool] = True

    def __init__(self, slot: WorkerSlot, sender: Dispatcher, subscriptions: Subscriptions):
        self._slot = slot
        self._sender = sender
        self._subscriptions = subscriptions
        self._sent: list[OutgoingMessage] = []
        self._savepoint: MessageSavepoint | None = None
        self._is_followed = False  # by callbacks after the commit, which may be slow

    def begin(self, receiving: Command, begun: Begun | None = None) -> AbstractContextManager[list[Row]]:
        """A block that yields the rows and ends with the commit; an exception rolls the receive back.

        ``begun``: from ``commit_and_begin``, unless that session was lost.
        """
        self.session = session = self._slot.session()
        if begun and begun[0] is session and begun[1]:
            return begun[1]
        return session.transaction_with(*receiving)

    def commit_and_begin(self, receiving: Command) -> Begun:
        """Last call in a block: commit, and begin the slot's next receive, in one round trip if possible."""
        return self.session, self.session.commit_and_begin_with(*receiving)

    @property
    def is_alone(self) -> bool:
        """Whether no notifications or callbacks follow the commit: the next message would be locked during them."""
        return not self._sent and not self._is_followed

    def committed(self) -> None:
        """Call after the block's commit: notify receivers of what was sent."""
        if self._sent:
            self._sender.committed(self._sent)

    def savepoint(self, insist: Callable[[], None]) -> MessageSavepoint:
        """The savepoint for each message of a batch. ``insist``: raises if a handler rolled the receive back."""
        self._savepoint = MessageSavepoint(self._sent, insist)
        return self._savepoint

    @property
    def lost(self) -> bool:
        return self.keeps_failed and self._slot.receive.lost

    @property
    def is_doomed(self) -> bool:
        """Whether the transaction has failed beyond its savepoints: all writes are undone."""
        return self.keeps_failed and self._slot.receive.has_failed

    def gives_back(self, error: Exception) -> bool:
        return self.lost or (self.keeps_failed and isinstance(error, PASSING))

    def was_handled(self, message: IncomingMessage) -> bool:
        return False

    def is_conflict(self, error: BaseException) -> bool:
        return False

    def handled(self, outgoing: list[OutgoingMessage], after_commit: list[Callable[[], None]]) -> None:
        self._is_followed |= bool(after_commit)
        if outgoing:
            self.dispatch(outgoing)

    def session_for_handlers(self) -> ReceiveSession | None:
        """Lend the session. A guard savepoint detects a handler that ends the transaction and begins another."""
        session = self._session()
        if self._savepoint is None:
            session.place_guard()
        return session

    def enlist(self, name: str) -> ReceiveSession:
        raise NotEnlisted(name)

    def to_give_up(self) -> AbstractContextManager[ReceiveSession]:
        return nullcontext(self._session())

    def _session(self) -> ReceiveSession:
        """The receive session; in a batch, now inside the message's savepoint."""
        session = self._slot.receive.held()
        if self._savepoint:
            self._savepoint.begin(session)
        return session

    def dispatch(self, outgoing: list[OutgoingMessage]) -> None:
        self.dispatch_now(outgoing)

    def dispatch_with_receive(self, outgoing: list[OutgoingMessage], last: bool = False) -> None:
        """Send in the receive transaction; ``last``: nothing follows in it."""
        if outgoing:
            with self.to_give_up() as session:
                self._sender.dispatch(session, outgoing, last)
            self._sent += outgoing

    def dispatch_now(self, outgoing: list[OutgoingMessage]) -> None:
        """Send and commit at once, on a session of its own."""
        if outgoing:
            with self._slot.send.transaction() as session:
                self._sender.dispatch(session, outgoing)
            self._sender.committed(outgoing)

    def subscribers(self, topics: list[str]) -> list[Address]:
        return self._subscriptions.subscribers(self._slot.send.fresh(), topics)


class SendsAtomicWithReceive(ReceiveTransaction):
    """The default: all sends of handlers commit with the receive."""

    def dispatch(self, outgoing: list[OutgoingMessage]) -> None:
        self.dispatch_with_receive(outgoing, last=self._savepoint is None)

    def subscribers(self, topics: list[str]) -> list[Address]:
        return self._subscriptions.subscribers(self._session(), topics)


class ReceiveOnly(ReceiveTransaction):
    """Sends of handlers are committed first: if the receive then fails, they are sent again."""


class NoTransaction(ReceiveTransaction):
    """The message is deleted before its handler runs: at most once."""

    keeps_failed = False
    lends_session = False

    def begin(self, receiving: Command, begun: Begun | None = None) -> AbstractContextManager[list[Row]]:
        self.session = self._slot.receive.fresh()  # it idled during the last handler, perhaps for long
        return nullcontext(self.session.all(*receiving))

    def commit_and_begin(self, receiving: Command) -> Begun:
        return self.session, None

    def session_for_handlers(self) -> None:
        return None

    @contextmanager
    def to_give_up(self) -> Iterator[ReceiveSession]:
        with self._slot.receive.transaction() as session:
            yield session


MODES: dict[str, type[ReceiveTransaction]] = {
    "sends_atomic_with_receive": SendsAtomicWithReceive,
    "receive_only": ReceiveOnly,
    "none": NoTransaction,
}

"""Receiving with an outbox: the handlers' writes and the record of their sends are one commit (outbox sheet 5).

Receive, find the record, handle, store, commit; then mark, dispatch and the end of the message.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from pgqueue_admin.dialects.connection import Command, ReceiveSession, Row
from pgqueue_admin.dialects.errors import AlreadyExists, DatabaseError, Deadlock, Locked, TimedOut
from pgqueue_admin.transport import after_commit as calls
from pgqueue_admin.transport.ports import Outbox
from pgqueue_admin.transport.receiving.receive_transaction import Begun, ReceiveOnly
from pgqueue_admin.transport.receiving.storage_transactions import EnlistedTransactions, StorageTransaction
from pgqueue_admin.transport.receiving.worker_slots import WorkerSlot
from pgqueue_admin.transport.sending.dispatcher import Dispatcher
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage

CONFLICTS = ("40001", "40P01")  # the database chose between two transactions: nothing is wrong with either


class HandledBeside(DatabaseError):
    """Another process handles this message at the same moment, or has just handled it."""


class ReceiveWithOutbox(ReceiveOnly):
    """Where the record lies beside the queues, mark and sends are one commit with the receive, so each outgoing message
    is sent once. Elsewhere they are committed before it, and a crash in between sends them again with the same ids.
    """

    def __init__(self, slot: WorkerSlot, sender: Dispatcher, subscriptions: Subscriptions, outbox: Outbox):
        super().__init__(slot, sender, subscriptions)
        self._outbox = outbox
        self._sessions = slot.storage_of(outbox)
        self._storage: StorageTransaction | None = None
        self._enlisted = EnlistedTransactions(slot, outbox)
        self._message: IncomingMessage | None = None
        self._message_id = ""
        self._asked = False  # the storage session: how another receive left it says nothing of this one

    def begin(self, receiving: Command, begun: Begun | None = None) -> AbstractContextManager[list[Row]]:
        return ReceiveAndStorage(super().begin(receiving, begun), self)

    def was_handled(self, message: IncomingMessage) -> bool:
        self._message, self._message_id, self._asked = message, message.message_id, True
        self._storage = self._look()
        if not self._storage.found:
            if self._outbox.is_pessimistic:
                self._store(self._outbox.storing(self._message_id, []))
            return False
        record = self._storage.found[0]
        pending = self._outbox.undispatched(record)
        self._storage.rollback()
        if not record.dispatched:  # also where it sends nothing: only what is marked is cleaned up
            self._dispatch_and_mark(pending)
        return True

    def _look(self) -> StorageTransaction:
        try:
            finding, apart = self._outbox.finding(self._message_id), self._outbox.finds_apart
            return StorageTransaction(self._sessions.fresh(), finding, apart)
        except Locked as error:  # where a reader waits for who is writing the record
            raise HandledBeside(error.detail, error.sqlstate) from error

    def session_for_handlers(self) -> ReceiveSession:
        """Its transaction is begun already; a savepoint notices where a handler ends it and begins another."""
        storage = self._in_storage()
        storage.session.place_guard()
        return storage.session

    def enlist(self, name: str) -> ReceiveSession:
        return self._enlisted.session(name)

    def handled(self, outgoing: list[OutgoingMessage], after_commit: list[Callable[[], None]]) -> None:
        """What is left to be called is called before anything is sent: that may fail, and the message then comes back
        as a duplicate, whose handlers are not called.
        """
        message_id = self._message_id
        if self._outbox.is_pessimistic:
            command = self._outbox.completing(message_id, outgoing)
        else:
            command = self._outbox.storing(message_id, outgoing)
        if self._enlisted:
            self._commit_with_enlisted(command)
        else:
            self._store(command, last=True)
            self._in_storage().commit()
        if after_commit and self._message:
            calls.call(after_commit, self._message)
        self._dispatch_and_mark(outgoing)

    def _commit_with_enlisted(self, storing: Command) -> None:
        """The record first: a duplicate is recognised before anything is prepared."""
        storage, enlisted = self._in_storage(), self._enlisted
        self._store(storing)
        storage.session.run(*self._outbox.deciding(enlisted.id, enlisted.names))
        enlisted.prepare()
        enlisted.commit_with(storage)

    def _store(self, command: Command, last: bool = False) -> None:
        storage = self._in_storage()
        try:
            if last:
                storage.session.run_last([command])
            else:
                storage.session.run(*command)
        except (Locked, TimedOut) as error:
            if last and not isinstance(error, Locked):
                raise  # it may be what handlers left to the commit that takes so long
            raise HandledBeside(error.detail, error.sqlstate) from error
        except AlreadyExists as error:
            storage.rollback()
            if self._record():  # else it is a key of the handlers' own, checked at the commit
                raise HandledBeside(error.detail, error.sqlstate) from error
            raise

    def _in_storage(self) -> StorageTransaction:
        assert self._storage, "was_handled comes first"
        return self._storage

    def _record(self) -> Row | None:
        return self._sessions.fresh().one(*self._outbox.finding(self._message_id))

    def _dispatch_and_mark(self, outgoing: list[OutgoingMessage]) -> None:
        """The mark first: it fails where somebody else has sent them meanwhile."""
        try:
            if self._outbox.is_beside_queues:
                self._with_receive(outgoing)
            else:
                with self._sessions.transaction() as storage:  # a copy of the message waits, and sends nothing
                    for command in self._outbox.marking_apart(self._message_id):
                        storage.run(*command)
                    self.dispatch_now(outgoing)
        except DatabaseError as error:
            if (record := self._record()) and record.dispatched:
                raise HandledBeside(error.detail, error.sqlstate) from error
            raise

    def _with_receive(self, outgoing: list[OutgoingMessage]) -> None:
        marking = self._outbox.marking(self._message_id)
        if outgoing:
            self._sender.dispatch(self._session(), outgoing, last=True, before=[marking])
            self._sent += outgoing
        else:
            self._session().run(*marking)

    def dispatch(self, outgoing: list[OutgoingMessage]) -> None:
        """Without a handler there is no record: one commit with the end of the message."""
        self.dispatch_with_receive(outgoing, last=True)

    @property
    def lost(self) -> bool:
        return super().lost or (self._asked and self._sessions.lost) or self._enlisted.lost

    def is_conflict(self, error: BaseException) -> bool:
        """Also one that a handler met, through whichever library."""
        cause: BaseException | None = error
        while cause and not _is_conflict(cause):
            cause = cause.__cause__
        return cause is not None

    def close_storage(self, error: BaseException | None) -> None:
        """A handler before may have left the session so that this one failed: the next begins in a new one."""
        if self._storage:
            self._storage.rollback()
        self._enlisted.undo()
        if error and self._asked and not self.lost and not self.is_conflict(error):
            self._sessions.close()


def _is_conflict(error: BaseException) -> bool:
    return isinstance(error, HandledBeside | Deadlock) or getattr(error, "sqlstate", None) in CONFLICTS


class ReceiveAndStorage(AbstractContextManager[list[Row]]):
    """Around the receive: what is not committed when its block is left is rolled back in the storage session."""

    def __init__(self, receive: AbstractContextManager[list[Row]], transaction: ReceiveWithOutbox):
        self._receive, self._transaction = receive, transaction

    def __enter__(self) -> list[Row]:
        return self._receive.__enter__()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool | None:
        self._transaction.close_storage(error)
        return self._receive.__exit__(kind, error, trace)

"""Receiving with an outbox: the handlers' writes and the record of their sends are one commit (outbox sheet 5).

Steps: receive, find the record, handle, store, commit; then mark, dispatch, commit the receive.
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

CONFLICTS = ("40001", "40P01")  # the database chose a victim among transactions: none is at fault


class HandledBeside(DatabaseError):
    """Another process handles this message at the same moment, or has just handled it."""


class ReceiveWithOutbox(ReceiveOnly):
    """If the record is beside the queues, mark and sends commit with the receive, so each outgoing message is sent
    once. Elsewhere they are committed before it, and a crash in between sends them again with the same ids.
    """

    def __init__(self, slot: WorkerSlot, sender: Dispatcher, subscriptions: Subscriptions, outbox: Outbox):
        super().__init__(slot, sender, subscriptions)
        self._outbox = outbox
        self._sessions = slot.storage_of(outbox)
        self._storage: StorageTransaction | None = None
        self._enlisted = EnlistedTransactions(slot, outbox)
        self._message: IncomingMessage | None = None
        self._message_id = ""
        self._asked = False  # this receive has used the storage session; its state before does not matter

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
        if not record.dispatched:  # even without sends: only marked records are cleaned up
            self._dispatch_and_mark(pending)
        return True

    def _look(self) -> StorageTransaction:
        try:
            finding, apart = self._outbox.finding(self._message_id), self._outbox.finds_apart
            return StorageTransaction(self._sessions.fresh(), finding, apart)
        except Locked as error:  # on databases where a reader waits for the writer of the record
            raise HandledBeside(error.detail, error.sqlstate) from error

    def session_for_handlers(self) -> ReceiveSession:
        """Lend the storage session. A guard savepoint detects a handler that ends the transaction and begins anew."""
        storage = self._in_storage()
        storage.session.place_guard()
        return storage.session

    def enlist(self, name: str) -> ReceiveSession:
        return self._enlisted.session(name)

    def handled(self, outgoing: list[OutgoingMessage], after_commit: list[Callable[[], None]]) -> None:
        """Callbacks run before the dispatch: if that fails, the message returns as a duplicate, whose handlers are not
        called.
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
        """Store the record first, to detect a duplicate before anything is prepared."""
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
                raise  # the commit of the handlers' writes may be the slow part
            raise HandledBeside(error.detail, error.sqlstate) from error
        except AlreadyExists as error:
            storage.rollback()
            if self._record():  # else a deferred key of the handlers' own failed at the commit
                raise HandledBeside(error.detail, error.sqlstate) from error
            raise

    def _in_storage(self) -> StorageTransaction:
        assert self._storage, "was_handled comes first"
        return self._storage

    def _record(self) -> Row | None:
        return self._sessions.fresh().one(*self._outbox.finding(self._message_id))

    def _dispatch_and_mark(self, outgoing: list[OutgoingMessage]) -> None:
        """Mark first: that fails if another process has sent them meanwhile."""
        try:
            if self._outbox.is_beside_queues:
                self._with_receive(outgoing)
            else:
                with self._sessions.transaction() as storage:  # a duplicate waits for it, and then sends nothing
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
        """Without a handler there is no record: send in the receive transaction."""
        self.dispatch_with_receive(outgoing, last=True)

    @property
    def lost(self) -> bool:
        return super().lost or (self._asked and self._sessions.lost) or self._enlisted.lost

    def is_conflict(self, error: BaseException) -> bool:
        """Also for a conflict in a handler's statement, through any library."""
        cause: BaseException | None = error
        while cause and not _is_conflict(cause):
            cause = cause.__cause__
        return cause is not None

    def close_storage(self, error: BaseException | None) -> None:
        """Undo what is not committed. After an error, close the session: an earlier handler may have broken it."""
        if self._storage:
            self._storage.rollback()
        self._enlisted.undo()
        if error and self._asked and not self.lost and not self.is_conflict(error):
            self._sessions.close()


def _is_conflict(error: BaseException) -> bool:
    return isinstance(error, HandledBeside | Deadlock) or getattr(error, "sqlstate", None) in CONFLICTS


class ReceiveAndStorage(AbstractContextManager[list[Row]]):
    """Wraps the receive: at the end of the block, rolls back uncommitted writes in the storage session."""

    def __init__(self, receive: AbstractContextManager[list[Row]], transaction: ReceiveWithOutbox):
        self._receive, self._transaction = receive, transaction

    def __enter__(self) -> list[Row]:
        return self._receive.__enter__()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool | None:
        self._transaction.close_storage(error)
        return self._receive.__exit__(kind, error, trace)

"""Receives a batch of messages: one delete, a savepoint per message, one commit."""

import logging

from pgqueue_admin.dialects.connection import Row
from pgqueue_admin.dialects.errors import DatabaseDown, SessionClosedByHandler, TransactionEndedByHandler
from pgqueue_admin.transport.handling.attempt import AttemptFailed, is_too_long
from pgqueue_admin.transport.receiving.message_savepoint import MessageSavepoint
from pgqueue_admin.transport.receiving.pump_state import ReceiveQuota
from pgqueue_admin.transport.receiving.receive_task import ReceiverContext, ReceiveTask, cause_of
from pgqueue_admin.transport.recoverability.executor import ErrorQueueRefused
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.unit_of_work import AfterCommit
from pgqueue_admin.transport.wire.message import IncomingMessage

log = logging.getLogger("pgqueue_admin.transport")


def next_task(work: ReceiverContext, receives: ReceiveQuota) -> ReceiveTask:
    """A batch if the settings say so; after a batch that could not be committed, single receives."""
    settings = work.settings()
    if settings.batch_size > 1 and work.queue.supports_batches and not work.one_by_one.is_next():
        return BatchTask(work, receives, settings)
    return ReceiveTask(work, receives, settings)


class BatchTask(ReceiveTask):
    """A failed message is retried in place, then dead-lettered as usual; the others are committed with it.

    If that is impossible (the commit is refused, the transaction takes longer than the server allows, or no error queue
    takes a message), all messages return to the queue, and are received one by one.
    """

    _messages: tuple[IncomingMessage, ...] = ()

    def __init__(self, work: ReceiverContext, receives: ReceiveQuota, settings: EndpointSettings):
        super().__init__(work, receives, settings)
        self._most = receives.batch(settings.batch_size)

    def _run(self) -> None:
        try:
            told = self._receive_batch()
        except Exception as error:
            self._came_back()
            self._undone(error)
        else:
            self._work.breaker.succeeded()
            for tell in told:
                tell()

    def _receive_batch(self) -> list[AfterCommit]:
        transaction = self._transaction
        savepoint = transaction.savepoint(self._insist)
        with transaction.begin(self._receiving, self._begun) as rows:
            told = [self._settle(message, savepoint) for message in self._received_batch(rows)]
            if told and transaction.is_alone:
                self._commit_with_next()
        transaction.committed()
        return told

    def _received_batch(self, rows: list[Row]) -> tuple[IncomingMessage, ...]:
        self._first_row = rows[0] if rows else None
        self._messages = messages = tuple(self._work.queue.read(rows))
        if messages:
            self._work.low_water.taken(messages[-1].seq, self._from())
        self._answer(found=len(messages) == self._most, took=bool(messages))
        self._hold(*[each.seq for each in messages])
        return messages

    def _settle(self, message: IncomingMessage, savepoint: MessageSavepoint) -> AfterCommit:
        """Process a message until it is handled, delayed or dead-lettered."""
        self._message = message
        while True:
            try:
                with savepoint:
                    return self._process(message)
            except ErrorQueueRefused:
                raise
            except Exception as error:
                failure = self._failure_of(message, error)
                if failure is None or self._transaction.lost:
                    raise
                savepoint.insist()
                self._count(message, cause_of(error), failure)

    def _insist(self) -> None:
        """Raises if a handler rolled the receive back: later messages would be committed, and received again."""
        session = self._transaction.session
        if session.closed_locally:
            raise SessionClosedByHandler
        if self._messages and not session.in_transaction and not self._work.queue.is_received(session, self._first_row):
            raise TransactionEndedByHandler

    def _came_back(self) -> None:
        if self._messages:
            self._work.low_water.came_back(self._messages[0].seq)

    def _undone(self, error: Exception) -> None:
        """The batch was rolled back. If it took too long, each message alone may be quick enough."""
        lost = isinstance(error, DatabaseDown | AttemptFailed) or self._transaction.lost
        if not self._messages or (lost and not is_too_long(cause_of(error))):
            return self._disturbed(cause_of(error))
        log.warning("A batch of %d is received again one by one: %s", len(self._messages), error)
        self._work.one_by_one.after(len(self._messages))
        self._work.signals.wake()

"""Receives one message: from the delete to the commit, and what follows if either fails."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pgqueue_admin.dialects.connection import Command, Row
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.queue_store import LOWEST
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.handling.attempt import AttemptFailed, is_too_long
from pgqueue_admin.transport.handling.message_processor import MessageProcessor
from pgqueue_admin.transport.logs import about
from pgqueue_admin.transport.ports import Observer
from pgqueue_admin.transport.receiving.in_flight import InFlightRows, LowWaterMark, LowWaterMarks
from pgqueue_admin.transport.receiving.pump_state import ReceiveQuota, Signals, SingleReceiveFallback
from pgqueue_admin.transport.receiving.receive_transaction import Begun, ReceiveTransaction
from pgqueue_admin.transport.receiving.worker_slots import WorkerSlot
from pgqueue_admin.transport.recoverability.executor import ErrorQueueRefused
from pgqueue_admin.transport.recoverability_actions import Immediately
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.unit_of_work import AfterCommit
from pgqueue_admin.transport.wire.message import IncomingMessage

log = logging.getLogger("pgqueue_admin.transport")


@dataclass(frozen=True, slots=True)
class ReceiverContext:
    """What all receive tasks of an endpoint share."""

    queue: TableQueue
    processing: MessageProcessor
    transaction: Callable[[WorkerSlot, EndpointSettings], ReceiveTransaction]
    low_water: LowWaterMarks
    held: InFlightRows
    one_by_one: SingleReceiveFallback
    observer: Observer
    breaker: CircuitBreaker
    settings: Callable[[], EndpointSettings]
    signals: Signals


class ReceiveTask:
    """One receive on a slot; it reports when the receive has answered and when the message is finished.

    It keeps its initial settings: a batch must not end in a mode chosen for single messages.
    """

    def __init__(self, work: ReceiverContext, receives: ReceiveQuota, settings: EndpointSettings):
        self._work = work
        self._receives = receives
        self._settings = settings
        self._most = 1
        self._since: LowWaterMark | None = None
        self._has_answered = False
        self._message: IncomingMessage | None = None
        self._held: tuple[int, ...] = ()
        self._begun: Begun | None = None

    def __call__(self, slot: WorkerSlot) -> None:
        self._slot = slot
        self._transaction = self._work.transaction(slot, self._settings)
        try:
            self._run()
        finally:
            self._answer(found=False, took=False, looked=False)
            if self._held:
                self._work.held.let_go(self._held)
            if self._message:
                self._work.observer.in_flight(slot.number, None)
            self._receives.finished()

    def begin_behind(self, before: ReceiveTransaction) -> None:
        """Begin in the round trip that commits the previous receive; if impossible, begin when called."""
        if self._settings.transaction_mode == "none":
            return  # a transaction begun here would never be ended
        try:
            self._begun = before.commit_and_begin(self._receiving)
        except BaseException:  # nothing was committed, and nothing begun
            self._answer(found=False, took=False, looked=False)
            self._receives.finished()
            raise

    def _run(self) -> None:
        try:
            told = self._receive()
        except Exception as error:
            self._came_back()
            self._went_wrong(error)
        else:
            self._succeeded(told)

    def _receive(self) -> AfterCommit | None:
        """Receive and process; None if there was nothing to receive."""
        transaction = self._transaction
        with transaction.begin(self._receiving, self._begun) as rows:
            message = self._received(rows)
            told = self._process(message) if message else None
            if message and transaction.is_alone:
                self._commit_with_next()
        transaction.committed()
        return told

    @cached_property
    def _receiving(self) -> Command:
        """The receive statement, the same for repeated begins."""
        return self._work.queue.receiving(self._from().seq, self._most)

    def _from(self) -> LowWaterMark:
        """Where to receive from, the same for repeated begins: no other slot receives these rows."""
        self._since = self._since or self._mark()
        return self._since

    def _mark(self) -> LowWaterMark:
        """A single receiver starts at the lowest seq: it keeps each producer's order, even if one commits late (T7)."""
        low_water = self._work.low_water
        if self._settings.concurrency > 1:
            return low_water.next_from(self._most)
        return LowWaterMark(LOWEST, low_water.mark.turn)

    def _commit_with_next(self) -> None:
        """Commit the finished message and begin the slot's next receive in one round trip."""
        if follower := self._slot.another():
            follower.begin_behind(self._transaction)
            self._slot.next = follower

    def _received(self, rows: list[Row]) -> IncomingMessage | None:
        messages = self._work.queue.read(rows)
        self._message = message = messages[0] if messages else None
        if message:
            self._work.low_water.taken(message.seq, self._from())
        self._answer(found=message is not None, took=message is not None)
        if message:
            self._hold(message.seq)
        return message

    def _hold(self, *seqs: int) -> None:
        self._held = seqs
        self._work.held.take(seqs)

    def _process(self, message: IncomingMessage) -> AfterCommit:
        """Process a message. If no error queue takes it, it stays locked for a pause, so that others are handled."""
        self._work.observer.in_flight(self._slot.number, message)
        try:
            return self._work.processing.process(message, self._transaction)
        except ErrorQueueRefused as error:
            self._work.signals.hold(error.pause)
            raise

    def _came_back(self) -> None:
        if self._message and self._transaction.keeps_failed:
            self._work.low_water.came_back(self._message.seq)

    def _answer(self, found: bool, took: bool, looked: bool = True) -> None:
        if not self._has_answered:
            self._has_answered = True
            self._receives.answered(found, took, looked)

    def _succeeded(self, after_commit: AfterCommit | None) -> None:
        self._work.breaker.succeeded()
        if after_commit:
            after_commit()

    def _went_wrong(self, error: Exception) -> None:
        if isinstance(error, ErrorQueueRefused):
            return self._not_taken(error)
        is_counted = isinstance(error, AttemptFailed) and error.failure
        if not is_counted and self._transaction.is_conflict(cause_of(error)):
            return self._again(error)
        kept_back = self._could_not_go(error)
        failure = self._message and self._failure_of(self._message, error)
        if self._message and failure:
            self._failed(self._message, cause_of(error), failure)
        if kept_back or not failure:
            self._disturbed(cause_of(error))

    def _again(self, error: Exception) -> None:
        """Receive again after a conflict, which is not counted: the other transaction has ended, or will soon."""
        log.info("A message is received again, since it was handled beside: %s", cause_of(error))
        self._work.signals.wake()

    def _could_not_go(self, error: Exception) -> bool:
        """Whether dead-lettering was refused: without a pause, the message would be received again at full speed."""
        if self._message is None or isinstance(error, AttemptFailed):
            return False
        return self._work.processing.failures.final(self._message.row_id) is not None

    def _failure_of(self, message: IncomingMessage, error: Exception) -> Failure | None:
        """The message's failure, e.g. a refused commit; None if it is not at fault: a lost session."""
        if isinstance(error, AttemptFailed):
            return error.failure
        is_down = isinstance(error, DatabaseDown) and self._transaction.keeps_failed
        if is_down or (self._transaction.lost and not is_too_long(error)):
            return None
        return self._work.processing.refused(message, error)

    def _failed(self, message: IncomingMessage, error: BaseException, failure: Failure) -> None:
        self._count(message, error, failure)
        if not self._transaction.keeps_failed:
            self._save(message, failure)
        self._work.signals.wake()  # it is back in the queue: an immediate retry must not wait for the peek delay

    def _count(self, message: IncomingMessage, error: BaseException, failure: Failure) -> None:
        self._work.observer.failed(error)
        if self._transaction.keeps_failed and isinstance(failure.action, Immediately):
            said = "Message %s failed and is retried: %s"
            log.warning(said, message.message_id, failure.message, exc_info=error, extra=about(message))
            self._work.observer.retried()

    def _save(self, message: IncomingMessage, failure: Failure) -> None:
        """Dead-letter a message that has no receive transaction: it can go nowhere else."""
        try:
            self._work.processing.recovery.end(message, failure, self._transaction)()
        except ErrorQueueRefused as error:
            self._work.signals.hold(error.pause)
            self._not_taken(error)

    def _not_taken(self, error: ErrorQueueRefused) -> None:
        message = self._message
        if message is None or self._transaction.keeps_failed:
            log.error("%s", error, extra=about(message) if message else None)
        else:
            said = "LOST, as mode none allows: %s. Its headers: %s"
            log.critical(said, error, message.headers_text, extra=about(message))

    def _disturbed(self, error: BaseException) -> None:
        self._slot.receive.close()  # an earlier handler may have broken it: role, read-only, timeout
        self._work.signals.hold(self._work.breaker.failed(error))


def cause_of(error: Exception) -> BaseException:
    return error.error if isinstance(error, AttemptFailed) else error

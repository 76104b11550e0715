"""Passes an exhausted message to the archive's port, or sends it to the error queue."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pgqueue_admin.dialects import Dialect
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.logs import about
from pgqueue_admin.transport.ports import Exhausted
from pgqueue_admin.transport.recoverability_actions import Exhaust
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.sync_call import ran
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.unit_of_work import UnitOfWork
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire import host_info
from pgqueue_admin.transport.wire.addresses import Addressing
from pgqueue_admin.transport.wire.header_composer import stamped
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage
from pgqueue_admin.transport.wire.wire_times import wire_now, wire_time

# Headers removed on the way to an error queue (wire sheet 7.2, 8.1).
_TAKEN_OFF = (h.RETRIES, h.FL_RETRIES, h.FORWARD_DESTINATION)


def faulted(dialect: Dialect, message: IncomingMessage, failure: Failure) -> h.Headers:
    """The original headers plus the failure. Retry counters are removed, ``Retries.Timestamp`` stays, as originally."""
    sent_on = stamped(message.headers, wire_now())
    kept = {name: value for name, value in sent_on.items() if name not in _TAKEN_OFF}
    kept |= h.of_its_own_trace(kept)
    if failure.forward_to:
        return kept | {h.MESSAGE_ID: message.message_id} | _not_forwarded(failure)
    return {
        **kept,
        h.MESSAGE_ID: message.message_id,
        **_where(dialect, failure),
        **_what(failure),
        **_data(message, failure),
    }


def _not_forwarded(failure: Failure) -> h.Headers:
    """Headers of a message that was not processed: FailedQ is its destination as its sender wrote it (wire sheet 3)."""
    return {**_what(failure), h.EXCEPTION_HELP_LINK: None, h.FAILED_Q: failure.forward_to}


def _where(dialect: Dialect, failure: Failure) -> h.Headers:
    return {
        h.PROCESSING_MACHINE: host_info.machine(),
        h.PROCESSING_ENDPOINT: failure.endpoint,
        h.HOST_ID: host_info.host_id(),
        h.HOST_DISPLAY_NAME: host_info.machine(),
        h.FAILED_Q: dialect.canonical(failure.queue),
    }


def _what(failure: Failure) -> h.Headers:
    inner: h.Headers = {h.INNER_EXCEPTION_TYPE: failure.inner_exception_type} if failure.inner_exception_type else {}
    return {
        h.EXCEPTION_TYPE: failure.exception_type,
        **inner,
        h.EXCEPTION_MESSAGE: failure.message,
        h.EXCEPTION_SOURCE: failure.source,
        h.EXCEPTION_STACK_TRACE: failure.stack_trace,
        h.TIME_OF_FAILURE: wire_time(failure.failed_at),
    }


def _data(message: IncomingMessage, failure: Failure) -> h.Headers:
    ids = {"Message ID": message.message_id, "Transport message ID": message.row_id}
    data = {**failure.data, **ids, "Pipeline canceled": "False"}
    return {h.EXCEPTION_DATA + name: value for name, value in data.items()}


log = logging.getLogger("pgqueue_admin.transport")

_NULL = "null"  # this header text in an error queue would stop a platform's ingestion for good


class DeadLettering:
    """Dead-letters as the settings say; without an archive's port, to the error queue."""

    def __init__(self, addressing: Addressing, archive: Exhausted | None):
        self._addressing = addressing
        self._dialect = addressing.dialect
        self._archive = archive

    def take(
        self, message: IncomingMessage, failure: Failure, settings: EndpointSettings, transaction: UnitOfWork
    ) -> None:
        """Move the message within the receive transaction, so that it is always in exactly one place. Raises any
        refusal."""
        log.error(
            "Message %s of %s will not be tried again after %d attempt(s): %s: %s",
            message.message_id,
            self._dialect.canonical(message.queue),
            failure.attempts,
            failure.exception_type,
            failure.message,
            extra=about(message),
        )
        if self._went_where_the_policy_says(message, failure, transaction):
            return
        with _savepoint(transaction) as connection:
            if settings.on_exhausted == "archive" and self._archive:
                ran(self._archive(connection, message, failure), self._archive)
            else:
                self._to_error_queue(connection, message, failure, settings.error_queue)

    def _went_where_the_policy_says(self, message: IncomingMessage, failure: Failure, transaction: UnitOfWork) -> bool:
        """Send to the policy's error queue. False if that refuses: else the message would head its queue for ever."""
        named = queue_named_by_the_policy(failure)
        if not named:
            return False
        try:
            with _savepoint(transaction) as connection:
                self._to_error_queue(connection, message, failure, named)
        except Exception as error:
            if transaction.gives_back(error) or transaction.is_doomed:
                raise
            said = "The policy's error queue %r did not take message %s, so the settings decide: %s"
            log.error(said, named, message.message_id, error, extra=about(message))
            return False
        return True

    def _to_error_queue(
        self, connection: Session, message: IncomingMessage, failure: Failure, error_queue: str
    ) -> None:
        queue = TableQueue(self._dialect, self._addressing.resolve(error_queue))
        if message.headers_lost and message.headers_text.strip() != _NULL:
            queue.send_as_it_is(connection, message.row_id, message.headers_text, message.body)
        else:
            headers = faulted(self._dialect, message, failure)
            queue.send(connection, [OutgoingMessage(queue.address, headers, message.body)])


def queue_named_by_the_policy(failure: Failure) -> str:
    """The error queue named by the policy; empty: the settings decide."""
    return failure.action.error_queue if isinstance(failure.action, Exhaust) else ""


@contextmanager
def _savepoint(transaction: UnitOfWork) -> Iterator[Session]:
    """A savepoint that keeps the row locked: a failed statement outside of one would release its lock at once."""
    with transaction.to_give_up() as connection, connection.transaction():
        yield connection

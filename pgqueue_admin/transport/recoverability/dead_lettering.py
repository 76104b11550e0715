"""Where a message goes that will not be tried again: the archive's port, or the error queue."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.logs import about
from pgqueue_admin.transport.ports import Exhausted
from pgqueue_admin.transport.recoverability.fault_headers import faulted
from pgqueue_admin.transport.recoverability_actions import Exhaust
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.transport.sync_call import ran
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.unit_of_work import UnitOfWork
from pgqueue_admin.transport.wire.addresses import Addressing
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage

log = logging.getLogger("pgqueue_admin.transport")

_NULL = "null"  # in an error queue too this header text would stop a platform's ingestion for good


class DeadLettering:
    """Takes the place of whichever the settings name; without an archive's port it is the error queue."""

    def __init__(self, addressing: Addressing, archive: Exhausted | None):
        self._addressing = addressing
        self._dialect = addressing.dialect
        self._archive = archive

    def take(
        self, message: IncomingMessage, failure: Failure, settings: EndpointSettings, transaction: UnitOfWork
    ) -> None:
        """In the receive transaction, so that the message is always in exactly one place. Raises what refuses it."""
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
        """A queue that is not there, or refuses it, would keep the message at the head of its own for ever."""
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
    """Empty: it leaves that to the settings."""
    return failure.action.error_queue if isinstance(failure.action, Exhaust) else ""


@contextmanager
def _savepoint(transaction: UnitOfWork) -> Iterator[Session]:
    """It keeps the row ours: a failed statement outside of one would give its lock up at once."""
    with transaction.to_give_up() as connection, connection.transaction():
        yield connection

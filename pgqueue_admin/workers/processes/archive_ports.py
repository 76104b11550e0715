"""Fills the engine's ports with the archive, in the receive transaction: for exhausted and for retried messages."""

import logging
import socket
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from pgqueue_admin.archive import store
from pgqueue_admin.archive.from_failure import dead_message
from pgqueue_admin.archive.messages import EDIT_OF, RETRIED_FROM, retried_from
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import Handlers, MessageContext
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.handling.context import Handler
from pgqueue_admin.transport.wire.message import IncomingMessage


# The port for exhausted messages: the archive, in the receive transaction (L2, C4).
def archive_failed(connection: Connection, message: IncomingMessage, failure: Failure) -> None:
    """Implements transport.ports.Exhausted."""
    dead = dead_message(message, failure, postgresql(), socket.gethostname())
    store.archive_failed(connection, dead, settings.PGQUEUE["OWN_CODE"])


# Marks a retried message as succeeded in the archive, in its receive transaction (C4).
log = logging.getLogger(__name__)


class MarkingHandlers(Handlers):
    """An endpoint's handlers, followed by the mark."""

    def __init__(self, handlers: Handlers, endpoint: str):
        super().__init__(handlers.unrecoverable)
        self._handlers, self._endpoint = handlers, endpoint

    def of(self, types: Sequence[str]) -> list[Handler]:
        found = self._handlers.of(types)
        return [*found, self._mark] if found else []

    @property
    def types(self) -> list[str]:
        return self._handlers.types

    def _mark(self, body: Any, context: MessageContext) -> None:
        received = context.received
        said = retried_from(received.headers.get(RETRIED_FROM))
        if said is None or context.connection is None:
            return
        try:
            with context.connection.transaction():  # a savepoint: an archive out of order must not fail the message
                message_id = received.headers.get(EDIT_OF) or received.message_id
                store.succeeded(context.connection, said, message_id, received.queue, self._endpoint)
        except DatabaseDown:
            raise
        except DatabaseError as error:
            log.warning("Message %s succeeded, and its archive row was not marked: %s", context.message_id, error)

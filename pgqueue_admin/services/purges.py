"""Purges a queue: an operation moves the messages waiting now into the bin; later ones stay."""

from typing import Any

from pgqueue_admin.archive import purge
from pgqueue_admin.dialects import Address, Connection, database_alias
from pgqueue_admin.models import Operation
from pgqueue_admin.models.queue_database import database_of
from pgqueue_admin.services.operations import purge_chunk, purge_elsewhere
from pgqueue_admin.services.operations.acts_allowed import check_purge
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.selection import WaitingIn, freeze
from pgqueue_admin.services.operations.targets import parsed
from pgqueue_admin.services.permissions import refusal_for

KIND = Operation.Kind.PURGE
_NOTHING = "Nothing was purged"


def prepare(queue: Address, person: Any, origin: str, reason: str = "") -> Operation:
    """Count waiting messages and fix the highest row number; take nothing. Raises OperationRefused, DatabaseError."""
    if refusal := refusal_for(person, KIND):
        raise OperationNotAllowed(f"{_NOTHING}: {refusal}.")
    try:
        with database_of(queue).read_session(queue) as connection:
            check_purge(connection, queue)
            seen = (
                purge_elsewhere.look(connection, queue)
                if database_alias.alias_of(queue)
                else purge.look(connection, queue)
            )
    except OperationRefused as error:
        raise OperationRefused(f"{_NOTHING}. {error}") from None
    return freeze(KIND, WaitingIn(queue, seen), person, origin, reason)


def left_since(connection: Connection, operation: Operation) -> int:
    """Count how many of the counted messages have left the queue. Raises DatabaseError."""
    (queue,) = parsed(operation.queues)
    if database_alias.alias_of(queue):
        return max(0, operation.count - purge_elsewhere.left(queue, purge_chunk.counted(operation)))
    return max(0, operation.count - purge.left(connection, queue, purge_chunk.counted(operation)))

"""Purging a queue: what waits there now goes into the bin, as an operation; what comes later stays."""

from typing import Any

from pgqueue_admin.archive import purge
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import Operation
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import purge_chunk
from pgqueue_admin.services.operations.acts_allowed import check_purge
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.selection import WaitingIn, freeze
from pgqueue_admin.services.operations.targets import parsed
from pgqueue_admin.services.permissions import refusal_for

KIND = Operation.Kind.PURGE
_NOTHING = "Nothing was purged"


def prepare(queue: Address, person: Any, origin: str, reason: str = "") -> Operation:
    """Count what waits, and fix up to which number. Nothing is taken yet. Raises OperationRefused, DatabaseError."""
    if refusal := refusal_for(person, KIND):
        raise OperationNotAllowed(f"{_NOTHING}: {refusal}.")
    try:
        with queue_database().reading(queue) as connection:
            check_purge(connection, queue)
            seen = purge.look(connection, queue)
    except OperationRefused as error:
        raise OperationRefused(f"{_NOTHING}. {error}") from None
    return freeze(KIND, WaitingIn(queue, seen), person, origin, reason)


def left_since(connection: Connection, operation: Operation) -> int:
    """How many of what was counted are in the queue no more. Raises DatabaseError."""
    (queue,) = parsed(operation.queues)
    return max(0, operation.count - purge.left(connection, queue, purge_chunk.counted(operation)))

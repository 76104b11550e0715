"""One chunk of a purge. It walks no set but the queue up to a row number; its items are the messages taken."""

from django.conf import settings

from pgqueue_admin.archive import purge
from pgqueue_admin.archive.held_row import NotMovable
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import NotPermitted, RowsDropped, SchemaMissing, TableChanged, TableMissing
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Operation
from pgqueue_admin.services.operations.acts_allowed import check_purge
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.operations.targets import parsed

# Errors that would recur on a retry. After all others, such as an unreachable database, the purge waits.
_NO_MORE = (OperationRefused, NotMovable, purge.NotAsCounted)
_NOR_WITH = (NotPermitted, RowsDropped, SchemaMissing, TableChanged, TableMissing)
STOPS = (*_NO_MORE, *_NOR_WITH)


def counted(operation: Operation) -> purge.CountedQueue:
    return purge.CountedQueue(operation.count, operation.up_to or 0, **operation.counted_in)


def refusal(connection: Connection, operation: Operation) -> str:
    """Why nothing more is taken under present conditions; empty: more is. Raises DatabaseError."""
    (queue,) = parsed(operation.queues)
    try:
        check_purge(connection, queue)
    except STOPS as error:
        return str(error)
    return ""


def take(connection: Connection, operation: Operation, size: int) -> list[int]:
    """Take messages in the caller's transaction; return their archive ids, none if nothing is left. Raises STOPS if the
    purge cannot go on.
    """
    most = limit(connection, operation, size)
    who, own_code = operation.started_by or operation.who, tuple(settings.PGQUEUE["OWN_CODE"])
    (queue,) = parsed(operation.queues)
    about = (connection, queue, counted(operation), most, who, own_code, operation.pk)
    return purge.chunk(*about) if most else []


def record(connection: Connection, operation: Operation, ids: list[int]) -> None:
    """Record the messages taken; or the end, with the number of counted messages that stay."""
    if not ids:
        (queue,) = parsed(operation.queues)
        end(connection, operation, purge.left(connection, queue, counted(operation)))
        return
    (name,) = operation.queues
    connection.run(postgresql().purge.record(), {"operation_id": operation.pk, "queue": name, "ids": ids})


def end(connection: Connection, operation: Operation, stays: int) -> None:
    """``stays``: how many of the counted messages are still in the queue."""
    Operation.objects.filter(pk=operation.pk).update(stays=stays)  # before the end, in case of a kill
    _end(connection, operation, "skipped", "The purge has ended.")


def limit(connection: Connection, operation: Operation, size: int) -> int:
    """Return how many more a chunk may take: in all never more than were counted at preparation."""
    done = int(connection.value(postgresql().purge.done(), {"operation_id": operation.pk}))
    return max(0, min(size, operation.count - done))


def stop(connection: Connection, operation: Operation, why: str) -> None:
    """Stop a purge that cannot go on: the rest stays unchanged."""
    _end(connection, operation, "failed", why)


def why_stopped(connection: Connection, operation: Operation) -> str:
    """Why it stopped; empty: it did not."""
    return connection.value(postgresql().purge.why_ended(), {"operation_id": operation.pk}) or ""


def _end(connection: Connection, operation: Operation, outcome: str, why: str) -> None:
    said = {"operation_id": operation.pk, "outcome": outcome, "why": why}
    connection.run(postgresql().purge.end(), said)

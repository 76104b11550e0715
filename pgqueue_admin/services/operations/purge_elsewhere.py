"""One chunk of a purge in another database: a crossing, so that the bin holds each message once (decision 032)."""

from collections.abc import Sequence

from pgqueue_admin.archive import crossing_in, purge
from pgqueue_admin.archive import crossings as rows
from pgqueue_admin.archive.crossing_in import TakingIn
from pgqueue_admin.archive.purge import CountedQueue
from pgqueue_admin.dialects import Address, Connection, database_alias
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import TakenRow
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.waiting_store import WaitingStore
from pgqueue_admin.models import Operation
from pgqueue_admin.models.queue_database import QueueDatabase, database_of, queue_database
from pgqueue_admin.services.operations import crossings, purge_chunk
from pgqueue_admin.services.operations.acts_allowed import check_purge, others_run
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.operations.targets import parsed


def is_there(operation: Operation) -> bool:
    return any(map(database_alias.alias_of, parsed(operation.queues)))


def look(there: Connection, queue: Address) -> CountedQueue:
    """Count the queue without locks. Raises DatabaseError."""
    waiting = _waiting(database_of(queue))
    table = waiting.identity(there, queue)  # first: a change before the count is noticed later
    seen = waiting.count(there, queue)
    if not seen.number or table is None:
        return CountedQueue(0, 0)
    return CountedQueue(seen.number, seen.up_to, seen.lowest, *table)


def left(queue: Address, counted: CountedQueue) -> int:
    """Return how many counted messages are left. Raises DatabaseError."""
    database = database_of(queue)
    with database.read_session() as there:
        return _waiting(database).left(there, queue, counted.lowest, counted.up_to)


def chunk(operation: Operation, size: int) -> bool:
    """Take one chunk; return whether there may be more. Raises DatabaseError if it must wait for that database."""
    crossings.settle(operation.pk)
    with queue_database().write_session() as guard, guard.transaction():
        alone = guard.value(postgresql().purge.begin_chunk(), {"operation_id": operation.pk})
        if not alone or Operation.objects.get(pk=operation.pk).state != Operation.State.RUNNING:
            return False
        if rows.is_open(guard, operation.pk):  # outcome pending: until then, what it took cannot be counted
            return False
        return _taken(operation, size)


def _taken(operation: Operation, size: int) -> bool:
    (queue,) = parsed(operation.queues)
    try:
        number = _take(operation, queue, size)
    except purge_chunk.STOPS as error:
        with queue_database().write_session() as here:
            purge_chunk.stop(here, operation, str(error))
        return False
    if number:
        return True
    stays = left(queue, purge_chunk.counted(operation))
    with queue_database().write_session() as here:
        purge_chunk.end(here, operation, stays)
    return False


def _take(operation: Operation, queue: Address, size: int) -> int:
    """Take messages and return how many. Raises STOPS, DatabaseError."""
    database, counted = database_of(queue), purge_chunk.counted(operation)
    with queue_database().read_session() as here:
        most = purge_chunk.limit(here, operation, size)
    if not most:
        return 0
    with database.read_session() as there:
        check_purge(there, queue)

    def take(there: Session) -> Sequence[TakenRow]:
        waiting = _waiting(database)
        found = waiting.take(there, queue, most, crossing_in.MOST, counted.lowest, counted.up_to)
        purge.insist_as_counted(queue, counted, waiting.identity(there, queue))  # while the rows are locked
        if why := others_run(there, database, queue):
            raise OperationRefused(why)
        return found

    who = operation.started_by or operation.who
    meant = TakingIn(database.alias, who, operation.pk, restores=True)
    taken, _ = crossings.take_out(database, queue, meant, take)
    return len(taken.rows)


def _waiting(database: QueueDatabase) -> WaitingStore:
    store = database.dialect.waiting_messages
    if store is None:
        raise OperationRefused(f"Nothing is done to what waits in the database {database.alias}.")
    return store

"""Decides whether waiting messages of a queue may be acted on by hand. Each act and each chunk of a purge calls it."""

import django.db

from pgqueue_admin.archive import crossings, lease_retry
from pgqueue_admin.archive.held_row import others_code, would_run
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.lease_store import QUEUE as LEASE_QUEUE
from pgqueue_admin.lease.errors import LeaseQueueMissing
from pgqueue_admin.models import Queue
from pgqueue_admin.models.queue_database import (
    QueueDatabase,
    database_of,
    is_watched,
    only_looked,
    queue_database,
    queues_in,
    write_refusal,
)
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.services import queue_access
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.operations.kinds import ours

_NOT_ALLOWED = (
    "No endpoint of this console receives from {}. Acts on its messages can be switched on in its settings, by whoever"
    " may change settings."
)


def table_of(connection: Connection, address: Address) -> QueueTable:
    """Return the table. Raises OperationRefused if no act on its messages is possible, DatabaseError.
    ``connection``: to its database.
    """
    if beyond := queue_access.refusal_for(address):
        raise OperationRefused(f"It {beyond}.")
    if why := write_refusal(address):
        raise OperationRefused(why)
    table = looked_at(connection, address)
    home_of(table)
    return table


def looked_at(connection: Connection, address: Address) -> QueueTable:
    """Return the table if its messages may at least be read. Raises likewise."""
    if not is_watched(address):
        raise OperationRefused(f"The schema {address.schema} is not watched here (PGQUEUE_QUEUE_SCHEMAS).")
    table = discovery.readable(connection, address)
    if table is None:
        raise OperationRefused(f"There is no queue table {address.table} now.")
    if table.kind is not TableKind.DELAYED:
        _insist_on_messages(table)
    return table


def home_of(table: QueueTable) -> Address:
    """Return the queue of the table's messages. Raises OperationRefused if no act on them is possible."""
    if table.kind is TableKind.DELAYED:
        if table.delayed_of is None:
            raise OperationRefused(f"No queue is known to which the messages of {table.address.table} go.")
        return table.delayed_of
    _insist_on_messages(table)
    return table.address


def _insist_on_messages(table: QueueTable) -> None:
    if not table.has_messages or table.kind in (TableKind.LEASE, TableKind.ARCHIVE):
        raise OperationRefused(f"{table.address.table} is no queue whose messages can be acted on.")


def why_foreign(table: QueueTable) -> str:
    """Why acts are refused on a foreign queue; empty: an endpoint of ours receives from it, or acts are allowed."""
    return foreign_refusal(table.delayed_of or table.address)


def foreign_refusal(queue: Address) -> str:
    return "" if is_ours(queue) or is_allowed(queue) else not_allowed(queue)


def not_allowed(queue: Address) -> str:
    """The refusal for a foreign queue on which acts are not allowed."""
    return _NOT_ALLOWED.format(queue.table)


def is_ours(queue: Address) -> bool:
    return ours()(queue)


def is_allowed(queue: Address) -> bool:
    return Queue.objects.filter(schema=queue.schema, table=queue.table, acts_allowed=True).exists()


def no_lease_queue(queue: Address) -> str:
    """Why nobody can act on lease messages in this table; empty: acts are possible.

    Another table of the same shape, such as a copy, has the same ids: an act would change another message.
    """
    if queue != LEASE_QUEUE:
        name = queue_database().dialect.canonical
        return f"{name(queue)} only has the shape of the lease queue, which is {name(LEASE_QUEUE)}"
    if not queue_database().allows(LEASE_QUEUE):
        return f"the schema {LEASE_QUEUE.schema} is not watched here (PGQUEUE_QUEUE_SCHEMAS)"
    return ""


def _check_lease_purge(connection: Connection) -> None:
    if beyond := queue_access.refusal_for(LEASE_QUEUE):
        raise OperationRefused(f"It {beyond}.")
    if elsewhere := no_lease_queue(LEASE_QUEUE):
        raise OperationRefused(f"{elsewhere[0].upper()}{elsewhere[1:]}.")
    if not lease_retry.are_linked(connection):
        raise OperationRefused(str(LeaseQueueMissing.__doc__))
    if why := would_run(connection, LEASE_QUEUE):
        raise OperationRefused(why)


def check_purge(connection: Connection, queue: Address) -> None:
    """Check that the queue may be purged now. Raises OperationRefused if not, or DatabaseError."""
    if queue == LEASE_QUEUE:
        return _check_lease_purge(connection)
    table = table_of(connection, queue)
    if table.kind is TableKind.DELAYED:
        raise OperationRefused(f"{queue.table} holds delayed messages: they are cancelled on their own page.")
    if why := why_foreign(table) or _would_run(connection, queue):
        raise OperationRefused(why)


def _would_run(connection: Connection, queue: Address) -> str:
    database = database_of(queue)
    if not database.alias:
        return would_run(connection, queue)
    with queue_database().read_session() as here:
        return carry_refusal(here, connection, database) or others_run(connection, database, queue)


def carry_refusal(here: Connection, there: Connection, database: QueueDatabase) -> str:
    """Why an act cannot span both databases now; empty: it can. Raises DatabaseError."""
    store = database.dialect.crossings
    if store is None or database.dialect.waiting_messages is None:
        return only_looked(database.alias)
    return store.fault(there) if crossings.can_carry(here) else crossings.NOT_KEPT


def others_run(there: Session, database: QueueDatabase, queue: Address) -> str:
    """Name code of other roles that would run on locking or deleting a row; empty: none. Raises DatabaseError."""
    waiting = database.dialect.waiting_messages
    assert waiting is not None
    return others_code(waiting.runs(there, queue))


def home_elsewhere(table: Address) -> Address:
    """Return the queue of a table in another database, by what this console knows: the table itself if it is a queue,
    or if its queue is not known any more. Raises DatabaseError.
    """
    try:
        known = {Address(each.schema, each.table): each.kind for each in queues_in(database_of(table).alias)}
    except django.db.Error as error:
        raise DatabaseError(f"The console's database does not answer: {error}") from error
    delayed = {each for each, kind in known.items() if kind == TableKind.DELAYED}
    return discovery.queues_of(delayed, known.keys() - delayed).get(table, table)

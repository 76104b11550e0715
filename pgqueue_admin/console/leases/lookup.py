"""The lease queue's table, if a page may read it."""

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models.queue_database import is_watched
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind


def lease_table(connection: Connection, address: Address) -> QueueTable | None:
    """None if it is no lease table, or may not be read. Raises DatabaseError."""
    found = discovery.readable(connection, address) if is_watched(address) else None
    return found if found and found.kind is TableKind.LEASE else None

"""How large tables are, indexes and large values included."""

from collections.abc import Iterable

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor.queue_table import QueueTable


def of(connection: Connection, tables: Iterable[QueueTable]) -> dict[int, int]:
    """Bytes by oid; nothing where one of the tables is locked just now, and the catalog's older sizes must do."""
    try:
        rows = connection.all(postgresql().monitor.sizes(), {"oids": [table.oid for table in tables]})
    except DatabaseDown:
        raise
    except DatabaseError:
        return {}
    return {row.oid: row.size_bytes for row in rows if row.size_bytes is not None}

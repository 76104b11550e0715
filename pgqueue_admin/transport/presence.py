"""Which tables stand already: who may not create anything in a schema may still use what others made there."""

from pgqueue_admin.dialects import Address, Connection, Dialect


def is_there(connection: Connection, dialect: Dialect, table: Address) -> bool:
    """Read from the catalog, which asks for no privilege."""
    return bool(connection.all(dialect.queue.columns(), {"schema": table.schema, "name": table.table}))

"""Which tables stand already: who may not create anything in a schema may still use what others made there."""

from contextlib import suppress
from typing import Any

from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.dialects.errors import AlreadyExists


def is_there(connection: Connection, dialect: Dialect, table: Address) -> bool:
    """Read from the catalog, which asks for no privilege."""
    return bool(connection.all(dialect.queue.columns(), {"schema": table.schema, "name": table.table}))


def create(connection: Connection, dialect: Dialect, table: Address, statement: Any) -> None:
    """Where it is missing; safe beside others who create it at the same moment: whoever comes second finds it made."""
    if not is_there(connection, dialect, table):
        with suppress(AlreadyExists), connection.transaction():
            connection.run(statement)

"""Which tables stand already: who may not create anything in a schema may still use what others made there."""

from contextlib import suppress
from typing import Any

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.errors import AlreadyExists
from pgqueue_admin.dialects.statements import StatementFolder


def is_there(session: Session, sql: StatementFolder, table: Address) -> bool:
    """Read from the catalog, which asks for no privilege."""
    return bool(session.all(sql.queue.columns(), {"schema": table.schema, "name": table.table}))


def create(session: Session, sql: StatementFolder, table: Address, statement: Any) -> None:
    """Where it is missing; safe beside others who create it at the same moment: whoever comes second finds it made."""
    if not is_there(session, sql, table):
        with suppress(AlreadyExists), session.transaction():
            session.run(statement)

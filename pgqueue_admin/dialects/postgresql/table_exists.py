"""Whether a table exists: a role without CREATE on a schema can still use existing tables."""

from contextlib import suppress
from typing import Any

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.errors import AlreadyExists
from pgqueue_admin.dialects.statements import StatementFolder


def is_there(session: Session, sql: StatementFolder, table: Address) -> bool:
    """Read the catalog, which needs no privilege."""
    return bool(session.all(sql.queue.columns(), {"schema": table.schema, "name": table.table}))


def create(session: Session, sql: StatementFolder, table: Address, statement: Any) -> None:
    """Create the table if missing; safe for concurrent callers: the second one finds it."""
    if not is_there(session, sql, table):
        with suppress(AlreadyExists), session.transaction():
            session.run(statement)

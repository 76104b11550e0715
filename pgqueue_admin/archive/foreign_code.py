"""Finds other roles' code that would run with our rights in a table that we write to, while it is locked against
changes."""

from typing import Any

from pgqueue_admin.archive.held_row import hold_table, others_code
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql

INSERT, DELETE, UPDATE = 4, 8, 16  # as the catalog's trigger bits; a sum means any of them


def would_run(connection: Connection, table: Address, acts: int) -> str:
    """A sentence naming other roles' code that these acts would run with our rights; empty: none. The table is locked
    until the caller's transaction ends, so the answer stays true. Raises DatabaseError."""
    hold_table(connection, table)
    asked = {"schema": table.schema, "name": table.table}
    query = postgresql().operation.would_run(**parts(acts))
    return others_code(connection.value(query, asked) or ())


def parts(acts: int) -> dict[str, Any]:
    """SQL parts of statements that check for foreign code; unused by other dialects' statements."""
    ours = postgresql().operation
    return {"runs_as_ours": ours.runs_as_ours, "is_engines": ours.is_engines, "of_kind": ours.of_kind, "acts": acts}

"""Code of other roles that would run as ours in a table that is written to: asked while nobody can attach any more."""

from typing import Any

from pgqueue_admin.archive.held_row import hold_table, others_code
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql

INSERT, DELETE, UPDATE = 4, 8, 16  # acts, as the catalog marks triggers; a sum of them is any


def would_run(connection: Connection, table: Address, acts: int) -> str:
    """A sentence on what of other roles runs as ours with these acts; empty: nothing. In the caller's transaction,
    until whose end it stays so. Raises DatabaseError.
    """
    hold_table(connection, table)
    asked = {"schema": table.schema, "name": table.table}
    query = postgresql().operation.would_run(**parts(acts))
    return others_code(connection.value(query, asked) or ())


def parts(acts: int) -> dict[str, Any]:
    """Of statements that ask for it; those of another dialect have none of these."""
    ours = postgresql().operation
    return {"runs_as_ours": ours.runs_as_ours, "is_engines": ours.is_engines, "of_kind": ours.of_kind, "acts": acts}

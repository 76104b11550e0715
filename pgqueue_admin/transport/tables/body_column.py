"""BodyString: a column that shows the body to whoever reads the table with SQL (T6; wire sheet 1.6)."""

import hashlib

from pgqueue_admin.dialects import Address, Connection, Dialect


def add(connection: Connection, dialect: Dialect, table: Address) -> None:
    """Where it is missing. Rewrites the table under an exclusive lock; whoever adds it at this moment is waited for."""
    named = {"schema": table.schema, "name": table.table}
    with connection.transaction():
        connection.run(dialect.body_column.lock(), {"key": lock_key(dialect.canonical(table))})
        if not connection.value(dialect.body_column.exists(), named):
            connection.run(dialect.body_column.add(table=table))


def lock_key(canonical: str) -> int:
    """The original's, so that its installers and ours wait for each other."""
    digest = hashlib.sha256(canonical.encode("utf-16-le")).digest()
    return int.from_bytes(digest[:8], "little", signed=True)

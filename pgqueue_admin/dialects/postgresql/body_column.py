"""BodyString: a column that shows the body as text to SQL readers (T6; wire sheet 1.6)."""

import hashlib

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.postgresql import addressing
from pgqueue_admin.dialects.statements import StatementFolder


def add(session: Session, sql: StatementFolder, table: Address) -> None:
    """Add the column if missing. Rewrites the table under an exclusive lock; waits for concurrent callers."""
    named = {"schema": table.schema, "name": table.table}
    with session.transaction():
        session.run(sql.body_column.lock(), {"key": lock_key(addressing.canonical(table))})
        if not session.value(sql.body_column.exists(), named):
            session.run(sql.body_column.add(table=table))


def lock_key(canonical: str) -> int:
    """The original's lock key, so that its installers and ours wait for each other."""
    digest = hashlib.sha256(canonical.encode("utf-16-le")).digest()
    return int.from_bytes(digest[:8], "little", signed=True)

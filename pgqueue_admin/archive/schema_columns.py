"""Which columns the engine's tables have here: those of versions before lack some, until engine_schema is run."""

from typing import Any
from weakref import WeakKeyDictionary

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

_there: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()  # by session: a column once added stays


def has(connection: Connection, column: str, table: str = "message_archive") -> bool:
    """Whether the archive, or another table of ours, has it. Asked once in a session, and again while it is missing."""
    known = _there.setdefault(connection.raw, set())
    name = f"{table}.{column}"
    if name not in known and connection.value(postgresql().archive.has_column(), {"table": table, "column": column}):
        known.add(name)
    return name in known

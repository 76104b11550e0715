"""Which columns the engine's tables have: older versions lack some until engine_schema is run."""

from typing import Any
from weakref import WeakKeyDictionary

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

_there: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()  # by session: added columns stay


def has(connection: Connection, column: str, table: str = "message_archive") -> bool:
    """Whether the archive, or another engine table, has the column. Cached per session once true."""
    known = _there.setdefault(connection.raw, set())
    name = f"{table}.{column}"
    if name not in known and connection.value(postgresql().archive.has_column(), {"table": table, "column": column}):
        known.add(name)
    return name in known

"""Whether the engine's tables keep tokens of retries: those of versions 1 and 2 do not, until engine_schema is run."""

from typing import Any
from weakref import WeakSet

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

_kept: WeakSet[Any] = WeakSet()  # sessions that saw them: a column once added stays


def are_kept(connection: Connection) -> bool:
    """Asked once in a session."""
    if connection.raw not in _kept and connection.value(postgresql().archive.has_tokens()):
        _kept.add(connection.raw)
    return connection.raw in _kept

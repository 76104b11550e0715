"""Archive rows that the server cannot read: a bad page, a missing TOAST chunk, an unknown enum label."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError

_DAMAGE = ("XX", "22")  # SQLSTATE classes: internal error and data corruption; invalid values


def is_damage(error: DatabaseError) -> bool:
    """Whether the error is caused by the row's data, so other rows may be readable."""
    return (error.sqlstate or "")[:2] in _DAMAGE


def readable(connection: Connection, read: Callable[[list[Any]], list[Any]], keys: Sequence[Any]) -> list[Any]:
    """The rows that ``read`` returns for the keys, without unreadable ones: a failing batch is halved."""
    try:
        with connection.transaction():
            return read(list(keys))
    except DatabaseError as error:
        if not is_damage(error):
            raise
    if len(keys) < 2:
        return []
    half = len(keys) // 2
    return readable(connection, read, keys[:half]) + readable(connection, read, keys[half:])


def damaged_row(key: Any, error: DatabaseError) -> Any:
    """A placeholder for lists and files (``listed``, ``exported`` of archive.sql): its key, and the error."""
    unknown = dict.fromkeys(_COLUMNS)
    why = f"This row cannot be read: {error.detail or error}"
    about = {"id": key.id, "seq": key.seq, "died_at": key.died_at, "state": "unreadable", "retry_blocked_reason": why}
    return SimpleNamespace(**{**unknown, **about})


_COLUMNS = (
    *("kind", "result", "queue", "message_id", "message_type", "body_bytes", "exception_type", "exception_message"),
    *("failed_queue", "target_schema", "target_table", "endpoint", "machine", "attempts", "sent_at", "resolved_by"),
    *("resolved_at", "ended_at", "operation", "has_target"),
    *("row_id", "exception_message_length", "headers", "headers_length"),  # for files only
)

"""A row of the archive that the server cannot read any more: a bad page, a lost piece of a long text, a lost label."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError

_DAMAGE = ("XX", "22")  # SQLSTATE classes: internal errors with data corrupted; values that are none


def is_damage(error: DatabaseError) -> bool:
    """Whether it is the data's doing, so that other rows may be read."""
    return (error.sqlstate or "")[:2] in _DAMAGE


def readable(connection: Connection, read: Callable[[list[Any]], list[Any]], keys: Sequence[Any]) -> list[Any]:
    """What ``read`` gives of these keys, without those that cannot be read: of a batch with such a one each half."""
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
    """As a list or a file has it (``listed``, ``exported`` of archive.sql): its key, and why nothing else is known."""
    unknown = dict.fromkeys(_COLUMNS)
    why = f"This row cannot be read: {error.detail or error}"
    about = {"id": key.id, "seq": key.seq, "died_at": key.died_at, "state": "unreadable", "retry_blocked_reason": why}
    return SimpleNamespace(**{**unknown, **about})


_COLUMNS = (
    *("kind", "result", "queue", "message_id", "message_type", "body_bytes", "exception_type", "exception_message"),
    *("failed_queue", "target_schema", "target_table", "endpoint", "machine", "attempts", "sent_at", "resolved_by"),
    *("resolved_at", "ended_at", "operation", "has_target"),
    *("row_id", "exception_message_length", "headers", "headers_length"),  # of a file
)

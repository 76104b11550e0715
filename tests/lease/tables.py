"""Rows of the lease queue and of its archive."""

from typing import Any

from pgqueue_admin.dialects import Connection


def waiting(connection: Connection) -> list[int]:
    return [row.id for row in connection.all("select id from messages.message order by id")]


def archived(connection: Connection, columns: str = "message_id, result::text, handled_by, details") -> list[Any]:
    return [tuple(row) for row in connection.all(f"select {columns} from messages.message_archive order by id")]


def let_expire(connection: Connection, message: int, behind: str = "1 second") -> None:
    """Move the expiry of its lock into the past, in both columns that a claim writes."""
    connection.run(
        "update messages.message set lock_expires_at = lock_expires_at - (lock_expires_at - (now() at time zone 'utc'))"
        " - %(behind)s::interval, token_expires_at = case when token_expires_at = lock_expires_at"
        " then (now() at time zone 'utc') - %(behind)s::interval else token_expires_at end where id = %(id)s",
        {"id": message, "behind": behind},
    )

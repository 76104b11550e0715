"""Counts of messages by failure and state: folds the changes that triggers record beside the archive into sums."""

from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

BATCH = 100_000  # changes folded per statement


def are_kept(connection: Connection) -> bool:
    """Whether the sums are readable here. Tables before version 11 have none; the archive is counted instead."""
    return bool(connection.value(_sql().are_tallied()))


def fold(connection: Connection) -> int:
    """Add the recorded changes to the sums. Return how many sums changed. Folding never changes a count."""
    if not are_kept(connection):
        return 0
    with connection.transaction():
        found: int = connection.run(_sql().fold(), {"most": BATCH})
        connection.run(_sql().forget_none())
    return found


def recount(connection: Connection) -> int:
    """Count everything and correct the sums. Return how many were wrong: writes bypassed the triggers."""
    if not are_kept(connection):
        return 0
    found: int = connection.value(_sql().recount())
    return found


def _sql() -> Any:
    return postgresql().failure_groups

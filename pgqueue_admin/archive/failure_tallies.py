"""How many messages of each failure are in which state: what triggers keep beside the archive is added up here."""

from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

BATCH = 100_000  # changes that one statement adds up


def are_kept(connection: Connection) -> bool:
    """Whether they can be read here. Tables of versions before 11 have none; then the archive is counted."""
    return bool(connection.value(_sql().are_tallied()))


def fold(connection: Connection) -> int:
    """Add up what has changed since; how many sums became others. Counts stay what they are, whenever it is done."""
    if not are_kept(connection):
        return 0
    with connection.transaction():
        found: int = connection.run(_sql().fold(), {"most": BATCH})
        connection.run(_sql().forget_none())
    return found


def recount(connection: Connection) -> int:
    """Count all; how many sums were wrong, because somebody wrote past the triggers. They are right afterwards."""
    if not are_kept(connection):
        return 0
    found: int = connection.value(_sql().recount())
    return found


def _sql() -> Any:
    return postgresql().failure_groups

"""The failure group of a message: its figures, people's notes, and whether others still die of it."""

from dataclasses import dataclass

from pgqueue_admin.archive import failure_groups
from pgqueue_admin.archive.messages import ArchivedMessage
from pgqueue_admin.console.failures import rows
from pgqueue_admin.console.failures.rows import FailureRow
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import database_clock
from pgqueue_admin.models.failure_group import words_of


@dataclass(frozen=True, slots=True)
class FailureOfMessage:
    """``others_lately``: how many others died of it in the last 10 minutes."""

    row: FailureRow
    others_lately: int


def of_archived(connection: Connection, message: ArchivedMessage) -> FailureOfMessage | None:
    """None without a failure, or if another program just archived it: a task sets its fingerprint."""
    if (found := failure_groups.of_message(connection, message.id)) is None:
        return None
    figures, others = found
    known = words_of([figures.fingerprint]).get(figures.fingerprint)
    return FailureOfMessage(rows.judged(figures, known, database_clock.now()), others)

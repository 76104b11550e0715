"""Of which failure a message is: its group's figures, what people say of it, and whether others still die of it."""

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
    """None of what succeeded, and of what others archived just now: its failure is told by a task."""
    if (found := failure_groups.of_message(connection, message.id)) is None:
        return None
    figures, others = found
    known = words_of([figures.fingerprint]).get(figures.fingerprint)
    return FailureOfMessage(rows.judged(figures, known, database_clock.now()), others)

"""Calls back messages that a retry sent and that still wait in their queues: the count, and the operation."""

from typing import Any

from pgqueue_admin.archive import schema_columns
from pgqueue_admin.archive.store import CappedCount
from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Operation
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import queries, staged_figures
from pgqueue_admin.services.operations.errors import EmptySelection, OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.runner import recount
from pgqueue_admin.services.operations.selection import SentBy, freeze
from pgqueue_admin.services.permissions import refusal_for

KIND = Operation.Kind.CALL_BACK
_NOTHING = "Nothing was called back"
_EDITED = (
    "what it has sent was edited, so new messages wait there, with other ids. Discard these in their queue; the old"
    " ones are in the archive, as retried."
)
_NOT_KEPT = "The engine's tables do not keep what was sent: run manage.py engine_schema."


def prepare(pk: int, person: Any, origin: str, reason: str = "") -> Operation:
    """Freeze the messages that retry ``pk`` sent and that still wait; take none back yet. Raises OperationRefused."""
    if refusal := refusal_for(person, KIND):
        raise OperationNotAllowed(f"{_NOTHING}: {refusal}.")
    if visible_queues.current() is not None:
        raise OperationNotAllowed(f"{_NOTHING}: that is for people who see every queue, where messages may have died.")
    sent = Operation.objects.filter(pk=pk).first()
    if sent is None or sent.kind != Operation.Kind.RETRY or sent.started_at is None:
        raise OperationRefused(f"{_NOTHING}: operation {pk} has sent no messages.")
    if sent.edit:
        raise OperationRefused(f"{_NOTHING}: {_EDITED}")
    if not _is_kept():
        raise OperationRefused(f"{_NOTHING}. {_NOT_KEPT}")
    staged_figures.note_left(pk)
    try:
        return freeze(KIND, SentBy(pk), person, origin, reason)
    except EmptySelection:
        raise EmptySelection(f"{_NOTHING}: of what operation {pk} sent, nothing is known to wait.") from None


def waiting(operation: Operation) -> CappedCount:
    """Count messages of the operation that still wait, without changing anything. Raises DatabaseError."""
    if operation.kind != Operation.Kind.RETRY or not operation.done or operation.edit or not _is_kept():
        return CappedCount(0, False)
    return staged_figures.still_waiting(operation.pk)


def recount_retries(archive_ids: list[int]) -> None:
    """Recount the retries whose sent messages an act took out of their queues. Raises DatabaseError."""
    with queue_database().read_session() as connection:
        found = connection.all(postgresql().operation.taken_back(), {"ids": archive_ids}) if archive_ids else []
    for number in queries.counted_here(row.operation for row in found):
        recount(number, only_changes=True)


def _is_kept() -> bool:
    with queue_database().read_session() as connection:
        return schema_columns.has(connection, "sent_as", "operation_item")

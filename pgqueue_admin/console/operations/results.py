"""The outcome of each message of an operation, a page at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pgqueue_admin.archive import search_query, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.console import pagination
from pgqueue_admin.console.operations.staged_progress import CLASSES, ENDED, ROUGH
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Operation, RetryPlan
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.operations import queries, staged_retry

ROWS = 50
ROUGHLY, ALL = "rough", "all"
FILTERS = (("", "All"), ("done", "Done"), ("skipped", "Skipped"), ("failed", "Failed"), ("open", "To go"))
BINNED = (Operation.Kind.DISCARD, Operation.Kind.PURGE)
OF_RETRIES = (("succeeded", "Succeeded"), ("dead_again", "Dead again"), ("retried", "Not known yet"))


@dataclass(frozen=True, slots=True)
class OperationResults:
    rows: list[Any]
    after: str
    outcome: str
    discarded: int  # by this operation, and still discarded
    restore: str  # the search that finds exactly these


def read(
    connection: Connection, operation: Operation, asked: Mapping[str, str], access: ContentAccess
) -> OperationResults | None:
    """None if it never started: rows with its number in the queue database are another console's."""
    if operation.started_at is None:
        return None
    plan = RetryPlan.objects.filter(pk=operation.pk).first()
    if plan:
        return _staged(connection, operation, plan, asked, access)
    outcome = next((name for name, _ in filters(operation) if name == asked.get("o")), "")
    start = pagination.integer(asked.get("after")) or 0
    rows = queries.items(connection, operation.pk, start, outcome, ROWS + 1)
    after = pagination.pack(rows[ROWS - 1].position) if len(rows) > ROWS else ""
    still = ArchiveFilter(state="discarded", last_operation=operation.pk)
    discarded = store.count(connection, still, operation.done).number if operation.kind in BINNED else 0
    return OperationResults(rows[:ROWS], after, outcome, discarded, search_query.written(still))


def _staged(
    connection: Connection, operation: Operation, plan: RetryPlan, asked: Mapping[str, str], access: ContentAccess
) -> OperationResults:
    """Results filtered by class; by default those that did not go smoothly."""
    outcome = next((name for name, _ in filters(operation) if name == asked.get("o")), ROUGHLY)
    classes = {ROUGHLY: list(ROUGH), ALL: None}.get(outcome, [outcome])
    start = pagination.integer(asked.get("after")) or 0
    rows = staged_retry.items(connection, plan, operation.state in ENDED, start, classes, ROWS + 1)
    after = pagination.pack(rows[ROWS - 1].position) if len(rows) > ROWS else ""
    shown = [row._replace(again_message=access.error(row.again_message)) for row in rows[:ROWS]]
    return OperationResults(shown, after, outcome, 0, "")


def filters(operation: Operation) -> tuple[tuple[str, str], ...]:
    """Names and words of the filters; of a retry also by outcome."""
    if RetryPlan.objects.filter(pk=operation.pk).exists():
        classes = ((each.name, each.word) for each in CLASSES)
        return ((ROUGHLY, "Not smooth"), (ALL, "All"), *classes, ("open", "Not sent"))
    if operation.kind == Operation.Kind.PURGE:
        return FILTERS[:1]  # a message that it did not take is no item of it
    return (*FILTERS[:2], *OF_RETRIES, *FILTERS[2:]) if operation.kind == Operation.Kind.RETRY else FILTERS

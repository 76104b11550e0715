"""How far an operation is: read once, and rendered alike by page and stream."""

from datetime import timedelta

from django.template.loader import render_to_string

from pgqueue_admin.console.operations import staged_progress
from pgqueue_admin.console.operations.plain_progress import OperationProgress
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting import escape_invisible
from pgqueue_admin.models import Operation, RetryPlan, database_clock
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import queries, runner

FOLLOWED = timedelta(hours=1)  # open pages count on after the end; success in foreign queues is never reported


def of(operation: Operation) -> OperationProgress:
    """An operation that never started is not looked up: rows with its number may be another console's."""
    if operation.started_at is None:
        return OperationProgress(operation)
    plan = RetryPlan.objects.filter(pk=operation.pk).first()
    try:
        with queue_database().read_session() as connection:
            now = queries.states(connection, operation.pk)
            if plan:
                return staged_progress.of(connection, operation, now)
        return OperationProgress(operation, runner.in_hand(operation), now)
    except DatabaseError:  # show what is known
        if plan:
            return staged_progress.StagedProgress(operation, is_known=False)
        return OperationProgress(operation)


def live(number: str) -> dict[str, str]:
    """For an open page: the whole section, the current states of the set, and what is announced at the end."""
    operation = Operation.objects.filter(pk=parse_int(number) or 0).first()
    if operation is None or (operation.ended_at and database_clock.now() - operation.ended_at > FOLLOWED):
        return {}
    progress = of(operation)
    about = {"operation": operation, "progress": progress}
    templates = {"progress": "staged" if progress.plan else "progress", "state": "state", "now": "now"}
    drawn: dict[str, str] = {
        f"op.{number}.{part}": render_to_string(f"pgqueue_admin/operations/{name}.html", about)
        for part, name in templates.items()
    }
    if progress.plan:
        drawn[f"op.{number}.rate"] = f"{progress.plan.rest_rate:g}"
    drawn[f"op.{number}.left"], drawn[f"op.{number}.acts"] = f"{progress.left:,}", progress.acts_class
    ended = "" if progress.moves else f"Operation {number} has ended: {progress.spoken}"
    return {**drawn, "@title": escape_invisible.plain(progress.title), "@say": ended}

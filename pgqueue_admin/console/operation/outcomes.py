"""What became of each message of an operation, a page at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pgqueue_admin.archive import store, terms
from pgqueue_admin.archive.model import Filter
from pgqueue_admin.console import paging
from pgqueue_admin.dialects import Connection
from pgqueue_admin.operations import service
from pgqueue_admin.records.models import Operation

ROWS = 50
FILTERS = (("", "All"), ("done", "Done"), ("skipped", "Skipped"), ("failed", "Failed"), ("open", "To go"))
OF_RETRIES = (("succeeded", "Succeeded"), ("dead_again", "Dead again"), ("retried", "Not known yet"))


@dataclass(frozen=True, slots=True)
class Outcomes:
    rows: list[Any]
    after: str
    outcome: str
    discarded: int  # by this operation, and still
    restore: str  # the search that finds just these


def read(connection: Connection, operation: Operation, asked: Mapping[str, str]) -> Outcomes | None:
    """None of one that was never started: what lies beside the queues under its number is another console's."""
    if operation.started_at is None:
        return None
    outcome = next((name for name, _ in filters(operation) if name == asked.get("o")), "")
    start = paging.integer(asked.get("after")) or 0
    rows = service.items(connection, operation.pk, start, outcome, ROWS + 1)
    after = paging.pack(rows[ROWS - 1].place) if len(rows) > ROWS else ""
    still = Filter(state="discarded", last_operation=operation.pk)
    discarded = store.count(connection, still, operation.done).number if operation.kind == Operation.Kind.DISCARD else 0
    return Outcomes(rows[:ROWS], after, outcome, discarded, terms.written(still))


def filters(operation: Operation) -> tuple[tuple[str, str], ...]:
    """Names and words: of a retry also by what came of it."""
    return (*FILTERS[:2], *OF_RETRIES, *FILTERS[2:]) if operation.kind == Operation.Kind.RETRY else FILTERS

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


@dataclass(frozen=True, slots=True)
class Outcomes:
    rows: list[Any]
    after: str
    outcome: str
    states: dict[str, int]
    discarded: int  # by this operation, and still
    restore: str  # the search that finds just these


def read(connection: Connection, operation: Operation, asked: Mapping[str, str]) -> Outcomes:
    outcome = next((name for name, _ in FILTERS if name == asked.get("o")), "")
    start = paging.integer(asked.get("after")) or 0
    rows = service.items(connection, operation.pk, start, outcome, ROWS + 1)
    after = paging.pack(rows[ROWS - 1].place) if len(rows) > ROWS else ""
    still = Filter(state="discarded", last_operation=operation.pk)
    discarded = store.count(connection, still, operation.done).number if operation.kind == Operation.Kind.DISCARD else 0
    states = service.states(connection, operation.pk)
    return Outcomes(rows[:ROWS], after, outcome, states, discarded, terms.written(still))

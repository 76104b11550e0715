"""Figures of hours and days become a row a kind: else each batch leaves one for ever. Their sums stay the same."""

from datetime import datetime

from django.db import transaction

from pgqueue_admin.history.rollups import closed_periods
from pgqueue_admin.models.raw_sql import console_sql, rows_of, run

AT_ONCE = 100  # steps a call; the next one goes on


def fold() -> int:
    """The oldest steps first, and also those that go on; how many. Minutes are forgotten before that would pay."""
    due = rows_of(console_sql.rollup_compaction.due(), {"most": AT_ONCE})
    for grain, at in due:
        _fold(grain, at)
    return len(due)


@transaction.atomic
def _fold(grain: str, at: datetime) -> None:
    closed_periods.alone()
    folding = console_sql.rollup_compaction
    run(folding.fold(kind=folding.kind), {"grain": grain, "at": at})

"""Figures of hours and days become a row a kind: else each batch leaves one for ever. Their sums stay the same."""

from datetime import datetime

from django.db import transaction

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.pipeline.figures import cut_steps
from pgqueue_admin.records.asking import rows_of, run

AT_ONCE = 100  # steps a call; the next one goes on


def fold() -> int:
    """The oldest steps first, and also those that go on; how many. Minutes are forgotten before that would pay."""
    due = rows_of(postgresql().folding.due(), {"most": AT_ONCE})
    for grain, at in due:
        _fold(grain, at)
    return len(due)


@transaction.atomic
def _fold(grain: str, at: datetime) -> None:
    cut_steps.alone()
    folding = postgresql().folding
    run(folding.fold(kind=folding.kind), {"grain": grain, "at": at})

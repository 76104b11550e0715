"""Final figures of finished hours and days: one row per kind instead of one per batch."""

from datetime import datetime
from typing import Any

from django.db import transaction

from pgqueue_admin.history.rollups import latency_bands
from pgqueue_admin.models import HistoryBatch
from pgqueue_admin.models.raw_sql import console_sql, rows_of, run
from pgqueue_admin.models.time_grains import STEPS

AT_ONCE = {"hour": 48, "day": 31}  # steps per call; the next call goes on


def finalize(watermark: datetime | None) -> int:
    """Finalize finished steps that are new or in doubt, up to where history is complete; return how many."""
    if watermark is None:
        return 0
    return sum(_finalize_due(grain, watermark) for grain in AT_ONCE)


def alone() -> None:
    """Lock out all others who change, finalize or fold figures, until this transaction ends."""
    run(console_sql.closed_periods.alone(), {})


def doubt(batch: HistoryBatch) -> None:
    """In the transaction of a batch's figures: invalidate its steps, so that queries sum them until finalized anew."""
    alone()
    steps = console_sql.closed_periods
    run(steps.doubt(doubted=steps.of_batch), {"batch": batch.pk})


def doubt_day(at: datetime) -> None:
    """The same for all steps of a day. The caller holds ``alone``."""
    steps = console_sql.closed_periods
    run(steps.doubt(doubted=steps.of_day), {"at": at})


def _finalize_due(grain: str, watermark: datetime) -> int:
    values = {"grain": grain, "step": STEPS[grain], "until": watermark, "most": AT_ONCE[grain]}
    due = rows_of(console_sql.closed_periods.due(), values)
    for (at,) in due:
        _cut({"grain": grain, "step": STEPS[grain], "at": at})
    return len(due)


@transaction.atomic
def _cut(step: dict[str, Any]) -> None:
    alone()
    steps, trends = console_sql.closed_periods, console_sql.trends
    parts = {"subject": steps.subject, "subjects": steps.subjects}
    run(steps.count(figures=trends.figures, again=trends.again, **parts), step)
    run(steps.count_failures(), step)
    run(steps.finalize(percentiles=trends.percentiles, **parts), {**step, "starts": latency_bands.STARTS})


# Folding merges the batches' rows of hours and days into one per kind, or each batch would leave one for ever. Sums
# stay the same.
FOLDED_AT_ONCE = 100  # steps per call; the next call goes on


def fold() -> int:
    """Fold the oldest steps first, also unfinished ones; return how many. Minutes are deleted before it would pay."""
    due = rows_of(console_sql.rollup_compaction.due(), {"most": FOLDED_AT_ONCE})
    for grain, at in due:
        _fold(grain, at)
    return len(due)


@transaction.atomic
def _fold(grain: str, at: datetime) -> None:
    alone()
    folding = console_sql.rollup_compaction
    run(folding.fold(kind=folding.kind), {"grain": grain, "at": at})

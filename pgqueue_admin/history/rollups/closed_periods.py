"""Final figures of finished hours and days: one row per kind instead of one per batch."""

from datetime import datetime
from typing import Any

from django.db import transaction

from pgqueue_admin.history.rollups import latency_bands
from pgqueue_admin.models import HistoryBatch
from pgqueue_admin.models.raw_sql import console_sql, rows_of, run
from pgqueue_admin.models.time_grains import STEPS

AT_ONCE = {"hour": 48, "day": 31}  # a call; the next one goes on


def finalize(watermark: datetime | None) -> int:
    """Count and cut steps that are over, that history is complete for, and that are new or in doubt; how many."""
    if watermark is None:
        return 0
    return sum(_finalize_due(grain, watermark) for grain in AT_ONCE)


def alone() -> None:
    """Until this transaction ends nobody else changes figures, or cuts or folds them."""
    run(console_sql.closed_periods.alone(), {})


def doubt(batch: HistoryBatch) -> None:
    """In the transaction that brings a batch's figures: until its steps are cut anew, whoever asks sums them."""
    alone()
    steps = console_sql.closed_periods
    run(steps.doubt(doubted=steps.of_batch), {"batch": batch.pk})


def doubt_day(at: datetime) -> None:
    """The same of all steps of a day, by one who is alone."""
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


# Figures of hours and days become a row a kind: else each batch leaves one for ever. Their sums stay the same.
FOLDED_AT_ONCE = 100  # steps a call; the next one goes on


def fold() -> int:
    """The oldest steps first, and also those that go on; how many. Minutes are forgotten before that would pay."""
    due = rows_of(console_sql.rollup_compaction.due(), {"most": FOLDED_AT_ONCE})
    for grain, at in due:
        _fold(grain, at)
    return len(due)


@transaction.atomic
def _fold(grain: str, at: datetime) -> None:
    alone()
    folding = console_sql.rollup_compaction
    run(folding.fold(kind=folding.kind), {"grain": grain, "at": at})

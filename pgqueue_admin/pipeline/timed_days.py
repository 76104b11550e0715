"""Figures of whole days: counted and cut once, when a day is over, so that Trends of years has nothing to sum."""

from datetime import datetime

from django.db import transaction

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.pipeline import bands
from pgqueue_admin.pipeline.weeks_before import asked
from pgqueue_admin.records.models import HistoryBatch

AT_ONCE = 31  # days a call; the next one goes on


def cut(complete_to: datetime | None) -> int:
    """Count and cut days that are over, that history is complete for, and that are new or in doubt; how many."""
    if complete_to is None:
        return 0
    until = complete_to.replace(hour=0, minute=0, second=0, microsecond=0)
    due = asked(postgresql().timed_days.due(), {"until": until, "most": AT_ONCE})
    for (at,) in due:
        _cut(at)
    return len(due)


def doubt(batch: HistoryBatch) -> None:
    """In the transaction that changes a batch's figures: until its days are cut anew, whoever asks sums them."""
    asked(postgresql().timed_days.alone(), {})
    asked(postgresql().timed_days.doubt(), {"batch": batch.pk})


@transaction.atomic
def _cut(at: datetime) -> None:
    asked(postgresql().timed_days.alone(), {})
    days, trends = postgresql().timed_days, postgresql().trends
    parts = {"subject": days.subject, "subjects": days.subjects}
    asked(days.count(figures=trends.figures, **parts), {"at": at})
    asked(days.cut(percentiles=trends.percentiles, **parts), {"at": at, "starts": bands.STARTS})

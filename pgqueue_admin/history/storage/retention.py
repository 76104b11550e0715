"""Retention of files: PGQUEUE_HISTORY_RETENTION_DAYS. Figures have their own: rollups."""

from datetime import date, timedelta
from pathlib import Path

from django.db.models import Q

from pgqueue_admin.models import DataFile, HistoryBatch


def retain(folder: Path, days: int, today: date) -> int:
    """Delete files whose messages, or events, are all older than ``days`` days (0: keep all); return how many. The end
    of rejected rows is unknown: they count from the day they were read.

    Manifest entries go first, and only those of done batches: a process killed in between leaves orphans for the sweep.
    """
    if not days:
        return 0
    before = today - timedelta(days=days)
    of_days = Q(dataset__in=[DataFile.Dataset.HISTORY, DataFile.Dataset.EVENTS], day__lt=before)
    of_rejected = Q(dataset=DataFile.Dataset.REJECTED, parts__batch__ended_at__date__lt=before)
    old = DataFile.objects.filter(of_days | of_rejected).distinct()
    old = old.exclude(parts__batch__in=HistoryBatch.objects.exclude(state=HistoryBatch.State.DONE))
    paths = list(old.values_list("path", flat=True))
    DataFile.objects.filter(path__in=paths).delete()
    for path in paths:
        (folder / path).unlink(missing_ok=True)
    return len(paths)

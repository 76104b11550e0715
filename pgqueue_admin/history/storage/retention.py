"""How long files are kept: PGQUEUE_HISTORY_RETENTION_DAYS. Figures have a retention of their own: rollups."""

from datetime import date, timedelta
from pathlib import Path

from django.db.models import Q

from pgqueue_admin.models import DataFile, HistoryBatch


def retain(folder: Path, days: int, today: date) -> int:
    """Forget files whose messages all ended, or whose events all were, more than ``days`` days ago (0: keep all); how
    many files went. When what was rejected ended nobody knows: it is kept for as long since it was read.

    The manifest comes first, and only what a done batch has written: whoever is killed in between leaves files that
    belong to nobody, for the sweep.
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

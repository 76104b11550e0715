"""How long files are kept: HISTORY_DAYS. Figures have a life of their own: ``forgetting``."""

from datetime import date, timedelta
from pathlib import Path

from pgqueue_admin.records.models import HistoryBatch, HistoryFile


def retain(folder: Path, days: int, today: date) -> int:
    """Forget files whose messages all ended more than ``days`` days ago (0: keep all); how many files went.

    The manifest comes first, and only what a done batch has written: whoever is killed in between leaves files that
    belong to nobody, for the sweep.
    """
    if not days:
        return 0
    old = HistoryFile.objects.filter(dataset=HistoryFile.Dataset.HISTORY, day__lt=today - timedelta(days=days))
    old = old.exclude(parts__batch__in=HistoryBatch.objects.exclude(state=HistoryBatch.State.DONE))
    paths = list(old.values_list("path", flat=True))
    HistoryFile.objects.filter(path__in=paths).delete()
    for path in paths:
        (folder / path).unlink(missing_ok=True)
    return len(paths)

"""Files that attempts left behind: a file that the manifest does not name is not part of history."""

import shutil
import time
from pathlib import Path

from pgqueue_admin.pipeline.places import REJECTED, VERSION
from pgqueue_admin.records.models import HistoryFile

OLD = 3600.0  # seconds: no attempt takes so long, and another driver's may still be at work


def sweep(folder: Path, now: float | None = None) -> int:
    """Remove folders of attempts that never committed, and files that retention left; how many of both went."""
    now = time.time() if now is None else now
    places = [place for dataset in (VERSION, REJECTED) for place in (folder / dataset).glob("batch-*")]
    return sum(_sweep(folder, place) for place in places if now - place.stat().st_mtime > OLD)


def _sweep(folder: Path, place: Path) -> int:
    below = f"{place.relative_to(folder)}/"
    named = set(HistoryFile.objects.filter(path__startswith=below).values_list("path", flat=True))
    if not named:
        shutil.rmtree(place, ignore_errors=True)
        return 1
    orphans = [path for path in place.rglob("*.parquet") if str(path.relative_to(folder)) not in named]
    for path in orphans:
        path.unlink(missing_ok=True)
    return len(orphans)

"""Files that attempts left behind: a file that the manifest does not name is not part of history."""

import shutil
import time
from pathlib import Path

from pgqueue_admin.pipeline.places import VERSION
from pgqueue_admin.records.models import HistoryFile

OLD = 3600.0  # seconds: no attempt takes so long, and another driver's may still be at work


def sweep(folder: Path, now: float | None = None) -> int:
    """Remove folders of attempts that never committed; how many went."""
    now = time.time() if now is None else now
    gone = 0
    for place in (folder / VERSION).glob("batch-*"):
        named = HistoryFile.objects.filter(path__startswith=f"{place.relative_to(folder)}/").exists()
        if not named and now - place.stat().st_mtime > OLD:
            shutil.rmtree(place, ignore_errors=True)
            gone += 1
    return gone

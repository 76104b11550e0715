"""Files that attempts and compactions left behind: a file that the manifest does not name is not part of history."""

import logging
import shutil
import time
from pathlib import Path

from pgqueue_admin.history.storage import compactions, foreign_files
from pgqueue_admin.history.storage.layout import ALL, token_of
from pgqueue_admin.models import DataFile, HistoryBatch

log = logging.getLogger(__name__)
OLD = compactions.LONGEST  # seconds: no attempt takes so long, and whoever reads a file has asked for it by now


def sweep(folder: Path, now: float | None = None) -> int:
    """Remove folders of attempts that never committed, and files that are history no more; how many of both went.

    None where something was written by another ledger: its manifest may name all that this one does not.
    """
    now = time.time() if now is None else now
    compactions.give_up_old()
    places = [place for dataset in ALL for place in (folder / dataset).glob("*-*")]
    if found := foreign_files.among(folder, places):
        log.warning(
            "History: no file is swept from %s, because this ledger knows nothing of %s in it (%s in all): the"
            " console's database was restored or is another one, or another console writes there"
            " (docs/how-to/resume-history.md).",
            folder, found[0].relative_to(folder), len(found),
        )  # fmt: skip
        return 0
    return sum(_sweep(folder, place, now - OLD) for place in places)


def _sweep(folder: Path, place: Path, before: float) -> int:
    is_at_work, below = _is_at_work(place), f"{place.relative_to(folder)}/"  # in this order: it may commit meanwhile
    named = set(DataFile.objects.filter(path__startswith=below).values_list("path", flat=True))
    if named:
        files = place.rglob("*.parquet")
        return _sweep_files([path for path in files if str(path.relative_to(folder)) not in named], before)
    if max(path.stat().st_mtime for path in [place, *place.rglob("*.parquet")]) >= before or is_at_work:
        return 0
    shutil.rmtree(place, ignore_errors=True)
    return 1


def _sweep_files(orphans: list[Path], before: float) -> int:
    old = [path for path in orphans if path.stat().st_mtime < before]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _is_at_work(place: Path) -> bool:
    """Whether its attempt may still commit, however long it has slept."""
    token = token_of(place)
    if token is None:
        return False
    return HistoryBatch.objects.filter(token=token, state="running").exists() or compactions.is_running(token)

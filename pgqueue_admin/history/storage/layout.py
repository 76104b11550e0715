"""Layout of the history folder: per dataset and version of its columns, a folder per attempt."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from uuid import UUID

from django.conf import settings

from pgqueue_admin.models import DataFile

VERSION = "v3"
REJECTED = "rejected-v1"
DEPTH = "depth-v4"
DEPTHS = (DEPTH, "depth-v3", "depth-v2", "depth-v1")
EVENTS = "events-v1"
ALL = (VERSION, "v2", "v1", REJECTED, *DEPTHS, EVENTS)


def folder() -> Path:
    return Path(settings.PGQUEUE["HISTORY_DIR"])


def of_attempt(root: Path, batch: int, token: UUID, dataset: str = VERSION) -> Path:
    """Unique per attempt: a driver that was thought dead cannot overwrite another's committed files."""
    return root / dataset / f"batch-{batch:08}-{token}"


def of_compaction(root: Path, source: int, day: date, token: UUID) -> Path:
    return root / VERSION / f"table-{source:04}-{day}-{token}"


def of_events(root: Path, day: date, token: UUID) -> Path:
    return root / EVENTS / f"{day}-{token}" / "events.parquet"


@contextmanager
def gone_if_it_fails(*places: Path) -> Iterator[None]:
    """Delete the places on error. Use only before a transaction may have named them; later the sweep decides."""
    try:
        yield
    except BaseException:
        for place in places:
            shutil.rmtree(place, ignore_errors=True)
        raise


def settle(root: Path, paths: Iterable[Path]) -> None:
    """Flush files and their folders to disk: after a power cut, no file in the manifest may be empty."""
    files = list(paths)
    folders = {each for path in files for each in path.parents if each.is_relative_to(root)}
    for file in files:
        _to_disk(file)
    for folder in sorted(folders, key=lambda each: len(each.parts), reverse=True):
        with suppress(OSError):  # some network file systems cannot flush folders
            _to_disk(folder)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def token_of(place: Path) -> UUID | None:
    try:
        return UUID(place.name[-36:])
    except ValueError:
        return None


# Refuses an empty PGQUEUE_HISTORY_DIR that should hold files of the manifest: its volume may not be mounted.
_NEWEST = 3  # a single deleted file must not block reading


def unmounted_reason(folder: Path) -> str:
    """Why nothing may be written to the folder, as sentences; empty if it may."""
    newest = list(DataFile.objects.order_by("-pk").values_list("path", flat=True)[:_NEWEST])
    if not newest or any((folder / path).exists() for path in newest):
        return ""
    return (
        f"PGQUEUE_HISTORY_DIR ({folder}) has none of the {len(newest)} newest files of history, e.g. {newest[0]}: "
        "is its volume mounted, or does PGQUEUE_HISTORY_DIR say another folder? "
        "Nothing is read before they are there (docs/how-to/resume-history.md)."
    )

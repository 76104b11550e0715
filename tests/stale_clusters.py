"""What test runs and benches of root that were killed left outside of their folders: it goes before the next begins."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from pgqueue_admin.embedded import cluster_location
from tests.server_location import PREFIX, SHARED

_OURS = ("pytest-of-", "pgqueue-")


def sweep() -> None:
    for wanted in left_over(is_of_tests):
        with suppress(OSError):  # its server is still writing while it ends: it goes the next time
            cluster_location.remove(wanted)
        if wanted.parent.name.startswith("pgqueue-"):
            shutil.rmtree(wanted.parent, ignore_errors=True)
    for place in {SHARED, Path(tempfile.gettempdir())}:
        for folder in abandoned(place):
            shutil.rmtree(folder, ignore_errors=True)


def abandoned(place: Path) -> Iterator[Path]:
    """Folders of ``server_folder`` in it that no run holds. Ours while it is looked at."""
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError), opened(folder) as file:
            if _is_settled(file) and _has_no_owner(file) and not _is_served(folder / "postgresql" / "data"):
                yield folder


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield file
    finally:
        os.close(file)


def _is_settled(file: int) -> bool:
    """Another run makes its folder, and locks it the moment after."""
    return time.time() - os.fstat(file).st_mtime > 60


def _is_served(data: Path) -> bool:
    """A server may outlive its run while it ends."""
    try:
        os.kill(int((data / "postmaster.pid").read_text().split()[0]), 0)
    except (OSError, ValueError, IndexError):
        return False
    return True


def left_over(is_mine: Callable[[Path], bool]) -> Iterator[Path]:
    """What is kept outside, and nobody lives who asked for it; only what ``is_mine``. Ours while it is looked at."""
    for mark in cluster_location.OUTSIDE.glob("*.of"):
        with suppress(FileNotFoundError), mark.open() as file:
            wanted = Path(file.read())
            if is_mine(wanted) and _has_no_owner(file):
                yield wanted


def _has_no_owner(mark: TextIO | int) -> bool:
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_of_tests(wanted: Path) -> bool:
    """In a temporary folder of ours; never of a project that somebody runs."""
    return any(
        wanted.is_relative_to(temporary) and wanted.relative_to(temporary).parts[0].startswith(_OURS)
        for temporary in (Path(tempfile.gettempdir()).resolve(), SHARED)
    )

"""Removes files that killed test runs and benches of root left outside their folders, before the next run begins."""

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
        with suppress(OSError):  # its server still writes while it stops: the next run removes it
            cluster_location.remove(wanted)
        if wanted.parent.name.startswith("pgqueue-"):
            shutil.rmtree(wanted.parent, ignore_errors=True)
    for place in {SHARED, Path(tempfile.gettempdir())}:
        for folder in abandoned(place):
            shutil.rmtree(folder, ignore_errors=True)


def abandoned(place: Path) -> Iterator[Path]:
    """Folders of ``server_folder`` that no run holds. Locked for us while yielded."""
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
    """Whether the folder is old enough: a run locks its folder only just after creating it."""
    return time.time() - os.fstat(file).st_mtime > 60


def _is_served(data: Path) -> bool:
    """Whether a server still runs: it may outlive its test run while it stops."""
    try:
        os.kill(int((data / "postmaster.pid").read_text().split()[0]), 0)
    except (OSError, ValueError, IndexError):
        return False
    return True


def left_over(is_mine: Callable[[Path], bool]) -> Iterator[Path]:
    """Clusters kept outside whose owner has died, if ``is_mine``. Locked for us while yielded."""
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
    """Whether it is in a temporary folder of tests, and not of a project that runs."""
    return any(
        wanted.is_relative_to(temporary) and wanted.relative_to(temporary).parts[0].startswith(_OURS)
        for temporary in (Path(tempfile.gettempdir()).resolve(), SHARED)
    )

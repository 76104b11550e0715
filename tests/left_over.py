"""What test runs and benches of root that were killed left outside of their folders: it goes before the next begins."""

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from pgqueue_admin.embedded import places
from tests.in_memory import SHARED

_OURS = ("pytest-of-", "pgqueue-")


def sweep() -> None:
    for wanted in places.left_over(is_of_tests):
        with suppress(OSError):  # its server is still writing while it ends: it goes the next time
            places.remove(wanted)
        if wanted.parent.name.startswith("pgqueue-"):
            shutil.rmtree(wanted.parent, ignore_errors=True)


def is_of_tests(wanted: Path) -> bool:
    """In a temporary folder of ours; never of a project that somebody runs."""
    return any(
        wanted.is_relative_to(temporary) and wanted.relative_to(temporary).parts[0].startswith(_OURS)
        for temporary in (Path(tempfile.gettempdir()).resolve(), SHARED)
    )

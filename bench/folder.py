"""A folder for one measurement, and nothing left of it: as root the server's files may lie outside of it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgqueue_admin.embedded import cluster_location


@contextmanager
def temporary() -> Iterator[Path]:
    """Its server belongs into ``postgresql``."""
    with tempfile.TemporaryDirectory(prefix="pgqueue-bench-") as name:
        try:
            yield Path(name)
        finally:
            cluster_location.remove(Path(name) / "postgresql")

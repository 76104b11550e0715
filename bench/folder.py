"""A temporary folder for one measurement, removed completely: as root, the server's files may be outside of it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgqueue_admin.embedded import cluster_location


@contextmanager
def temporary() -> Iterator[Path]:
    """The server must be created in its ``postgresql``."""
    with tempfile.TemporaryDirectory(prefix="pgqueue-bench-") as name:
        try:
            yield Path(name)
        finally:
            cluster_location.remove(Path(name) / "postgresql")

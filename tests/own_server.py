"""A PostgreSQL server of one test's own, with other settings than the run's."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pgqueue_admin.embedded import cluster_location
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests import server_location


@contextmanager
def own_server(conf: dict[str, Any], bin: Path | None = None) -> Iterator[PostgreSQL]:
    """``bin``: a folder of binaries; None: the run's."""
    root = Path(tempfile.mkdtemp(prefix="pgqueue-cluster-", dir=server_location.folder()))
    root.chmod(0o755)
    server = PostgreSQL(root / "postgresql", bin=bin, conf=conf)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        cluster_location.remove(root / "postgresql")
        shutil.rmtree(root, ignore_errors=True)

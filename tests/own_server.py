"""A PostgreSQL server of one test's own, with other settings than the run's."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests.server_location import server_folder


@contextmanager
def own_server(conf: dict[str, Any], bin: Path | None = None, files: Path | None = None) -> Iterator[PostgreSQL]:
    """``bin``: a folder of binaries; None: the run's. ``files``: of a stopped server, to begin with a copy of them."""
    with server_folder() as folder:
        server = PostgreSQL(folder, bin=bin, conf=conf)
        if files:
            subprocess.run(["cp", "-a", f"{files}/.", server.home], check=True)  # with their owner
        server.start()
        try:
            yield server
        finally:
            server.stop()

"""A PostgreSQL server of one test's own, with other settings than the run's."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests.server_location import server_folder


@contextmanager
def own_server(conf: dict[str, Any], bin: Path | None = None) -> Iterator[PostgreSQL]:
    """``bin``: a folder of binaries; None: the run's."""
    with server_folder() as folder:
        server = PostgreSQL(folder, bin=bin, conf=conf)
        server.start()
        try:
            yield server
        finally:
            server.stop()

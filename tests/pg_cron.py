"""A server of Debian's PostgreSQL 15 with pg_cron, as the image of deploy/postgres is one."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgqueue_admin.embedded import cluster_location
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests import server_location

BIN = Path(os.environ.get("PG_CRON_BIN") or "/usr/lib/postgresql/15/bin")
LIBRARY = BIN.parent / "lib" / "pg_cron.so"
HOME = "shop"  # the database that has the jobs


@contextmanager
def server() -> Iterator[PostgreSQL]:
    if not LIBRARY.exists():
        pytest.fail(f"No {LIBRARY}: install Debian's postgresql-15-cron, or set PG_CRON_BIN= to such a folder.")
    root = Path(tempfile.mkdtemp(prefix="pgqueue-cluster-", dir=server_location.folder()))
    root.chmod(0o755)
    conf = {
        "shared_preload_libraries": "pg_cron", "cron.database_name": HOME, "cron.use_background_workers": "on",
        "max_worker_processes": 20, "fsync": "off",
    }  # fmt: skip
    server = PostgreSQL(root / "postgresql", bin=BIN, conf=conf)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        cluster_location.remove(root / "postgresql")
        shutil.rmtree(root, ignore_errors=True)

"""A server with pg_cron: Debian's PostgreSQL 15, like the image of deploy/postgres."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests.own_server import own_server

BIN = Path(os.environ.get("PG_CRON_BIN") or "/usr/lib/postgresql/15/bin")
LIBRARY = BIN.parent / "lib" / "pg_cron.so"
HOME = "shop"  # the database that holds the jobs


def bin_folder() -> Path:
    """Where the server's binaries are."""
    if not LIBRARY.exists():
        pytest.fail(f"No {LIBRARY}: install Debian's postgresql-15-cron, or set PG_CRON_BIN= to such a folder.")
    return BIN


@contextmanager
def server() -> Iterator[PostgreSQL]:
    conf = {
        "shared_preload_libraries": "pg_cron", "cron.database_name": HOME, "cron.use_background_workers": "on",
        "max_worker_processes": 20, "fsync": "off",
    }  # fmt: skip
    with own_server(conf, bin_folder()) as server:
        yield server

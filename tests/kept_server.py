"""The server of a test run, kept for the next run if PGQUEUE_TEST_KEEP is set, so that templates are made once."""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded import binaries
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests import server_location

ROOT = Path(__file__).resolve().parents[1]
PREFIX = "pgqueue-kept-"
LONGEST = 12 * 3600  # seconds; templates hold the times at which they were made


@contextmanager
def kept_server(conf: dict[str, Any]) -> Iterator[PostgreSQL]:
    """Start the server of this checkout, these binaries and this pytest worker, with no databases but its templates.

    Raises UsageError if another run has it. A server left by a killed run is created anew.
    """
    with _kept_folder() as folder:
        server = PostgreSQL(folder, conf=conf)
        server.start()
        try:
            _clear(server)
            yield server
        finally:
            server.stop()


@contextmanager
def _kept_folder() -> Iterator[Path]:
    root = server_location.folder() / f"{PREFIX}{_name()}"
    root.mkdir(mode=0o755, exist_ok=True)
    lock = os.open(root, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        _hold(lock, root)
        ended = root / "ended"
        if not _is_usable(ended):
            shutil.rmtree(root / "postgresql", ignore_errors=True)
        ended.unlink(missing_ok=True)
        yield root / "postgresql"
        ended.touch()
    finally:
        os.close(lock)


def _name() -> str:
    whose = f"{ROOT} {binaries.postgresql()}".encode()
    return f"{hashlib.sha256(whose).hexdigest()[:8]}-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"


def _hold(lock: int, root: Path) -> None:
    if os.fstat(lock).st_uid != os.geteuid():
        raise pytest.UsageError(f"{root} is somebody else's.")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise pytest.UsageError(f"Another run has the server of {root}: end it, or run without KEEP=1.") from None


def _is_usable(ended: Path) -> bool:
    return ended.exists() and time.time() - ended.stat().st_mtime < LONGEST


def _clear(server: PostgreSQL) -> None:
    """Drop the databases and roles that tests left, so that a run begins as on a new server."""
    with postgresql().connect(server.dsn()) as admin:
        for (statement,) in admin.all(LEFT):
            admin.run(statement)


LEFT = r"""
select format('drop database %I with (force)', datname) from pg_database
where not datistemplate and datname <> 'postgres' and datname not like 'template\_%'
union all
select format('drop role %I', rolname) from pg_roles where rolname not like 'pg\_%' and rolname <> current_user
"""

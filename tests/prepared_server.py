"""The server of a test run, from files that one process of CI prepared for all its steps: templates are made once."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pgqueue_admin.embedded import binaries
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests.own_server import own_server

VARIABLE = "PGQUEUE_TEST_PREPARED"  # names the folder, which whoever sets it removes


@contextmanager
def prepared_server(conf: dict[str, Any], prepare: Callable[[PostgreSQL], None]) -> Iterator[PostgreSQL]:
    """On a copy of these files, so that no run sees what another did."""
    with own_server(conf, files=_prepared(Path(os.environ[VARIABLE]), conf, prepare)) as server:
        yield server


def _prepared(folder: Path, conf: dict[str, Any], prepare: Callable[[PostgreSQL], None]) -> Path:
    """Files of a server that was stopped, of these binaries. The first who asks makes them, and others wait for it."""
    files = folder / hashlib.sha256(os.fsencode(binaries.postgresql())).hexdigest()[:8]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not files.exists():
            half = folder / "half"
            shutil.rmtree(half, ignore_errors=True)  # of a process that was killed
            with own_server({**conf, "wal_recycle": "off"}) as server:  # what is kept for later would be copied, too
                prepare(server)
                server.stop()
                subprocess.run(["cp", "-a", server.home, half], check=True)  # with their owner, the server's account
            half.rename(files)
    return files

"""Where the server of a test run keeps its files: in memory where there is plenty, for each clone is 300 of them."""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgqueue_admin.embedded import cluster_location

PREFIX = "pgqueue-cluster-"
SHARED = Path("/dev/shm")
PLENTY = 6 * 2**30  # bytes free, there and in memory: what four servers take at most is two thirds of it


def folder() -> Path:
    return SHARED if _has_plenty() else Path(tempfile.gettempdir())


@contextmanager
def server_folder() -> Iterator[Path]:
    """A new one, locked while this process lives: by that ``stale_clusters`` tells it from what a killed run left."""
    root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder()))
    lock = os.open(root, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    root.chmod(0o755)  # the server's account enters here
    try:
        yield root / "postgresql"
    finally:
        cluster_location.remove(root / "postgresql")
        shutil.rmtree(root, ignore_errors=True)
        os.close(lock)


def _has_plenty() -> bool:
    """And where binaries may run, which are copied beside the data when the server's account cannot reach them."""
    try:
        place, memory = os.statvfs(SHARED), Path("/proc/meminfo").read_text()
    except OSError:
        return False
    available = re.search(r"MemAvailable: +(\d+) kB", memory)
    free = min(place.f_bavail * place.f_frsize, int(available[1]) * 1024 if available else 0)
    return free >= PLENTY and not place.f_flag & os.ST_NOEXEC

"""Where the server of a test run keeps its files: in memory if enough is free, for each clone has 300 of them."""

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
PLENTY = 6 * 2**30  # bytes free, on disk and in memory; four servers take at most two thirds of it


def folder() -> Path:
    return SHARED if _has_plenty() else Path(tempfile.gettempdir())


@contextmanager
def server_folder() -> Iterator[Path]:
    """A new folder, locked while this process lives; ``stale_clusters`` removes unlocked ones."""
    root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder()))
    lock = os.open(root, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    root.chmod(0o755)  # the server's account must enter it
    try:
        yield root / "postgresql"
    finally:
        cluster_location.remove(root / "postgresql")
        shutil.rmtree(root, ignore_errors=True)
        os.close(lock)


def _has_plenty() -> bool:
    """Whether enough memory is free, and binaries may run there: they are copied if the server's account needs it."""
    try:
        place, memory = os.statvfs(SHARED), Path("/proc/meminfo").read_text()
    except OSError:
        return False
    available = re.search(r"MemAvailable: +(\d+) kB", memory)
    free = min(place.f_bavail * place.f_frsize, int(available[1]) * 1024 if available else 0)
    return free >= PLENTY and not place.f_flag & os.ST_NOEXEC

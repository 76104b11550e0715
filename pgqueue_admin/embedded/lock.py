"""Lock that lets only one process run the servers of a var folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgqueue_admin.embedded.errors import ServerFailed


@contextmanager
def only_one(var: Path) -> Iterator[None]:
    """Hold the lock. Raises ServerFailed, naming the process that holds it. The kernel frees it when that one ends."""
    var.mkdir(parents=True, exist_ok=True)
    with (var / "up.lock").open("a+", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            who = lock.read().strip() or "?"
            raise ServerFailed(f"It is running, as process {who}: stop that one first (Ctrl-C there).") from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield

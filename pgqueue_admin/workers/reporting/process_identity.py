"""The identity of a process: host, pid, and start time of the pid."""

import os
import socket
from typing import NamedTuple

from pgqueue_admin.osproc.process_tree import stat


class ProcessIdentity(NamedTuple):
    """A pid may be reused, so it never identifies a process alone."""

    host: str
    pid: int
    start_ticks: int

    @property
    def alive(self) -> bool:
        """Only this host's processes can be checked."""
        return self.host == host() and start_ticks(self.pid) == self.start_ticks


def host() -> str:
    """This host's name. ``PGQUEUE_HOST`` overrides it where containers share one, or one machine acts as two."""
    return os.environ.get("PGQUEUE_HOST") or socket.gethostname()


def start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/<pid>/stat; None if the process does not exist or is a zombie."""
    try:
        fields = stat(pid)
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def of(pid: int) -> ProcessIdentity:
    return ProcessIdentity(host(), pid, start_ticks(pid) or 0)


def mine() -> ProcessIdentity:
    return of(os.getpid())

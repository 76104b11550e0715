"""A PostgreSQL server as our child process, in the foreground: reaped when killed, never a zombie."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from pgqueue_admin.embedded import binaries, cluster_location, os_account, ports
from pgqueue_admin.embedded.cluster import SUPERUSER, Cluster
from pgqueue_admin.embedded.errors import ServerFailed
from pgqueue_admin.osproc import child_process

# postmaster.pid holds the process that runs a cluster, and whether it accepts connections yet.
_GRACE = 60  # seconds: a postmaster whose parent died shuts down, with a checkpoint


def pid(data: Path) -> int | None:
    """The process that runs this cluster now; None for a stale lock file."""
    try:
        number = int((data / "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0])
        # the pid may have been reused; a postmaster's working folder is its data folder
        return number if os.readlink(f"/proc/{number}/cwd") == str(data) else None
    except (OSError, ValueError):
        return None


def is_ready(data: Path, child: int) -> bool:
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return len(lines) > 7 and lines[0] == str(child) and lines[7].strip() == "ready"


def give_way(data: Path) -> None:
    """Stop a postmaster left running by a killed parent, and remove a stale lock file."""
    deadline = time.monotonic() + _GRACE
    while (running := pid(data)) and time.monotonic() < deadline:
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(running, signal.SIGINT)
        time.sleep(0.1)
    if not pid(data):
        (data / "postmaster.pid").unlink(missing_ok=True)


_START = 60.0  # crash recovery of a large cluster takes a while


class PostgreSQL:
    """Any PostgreSQL ≥ 14. ``start`` makes a missing cluster; once started, the server keeps its port.

    The caller makes sure that only one object exists for a ``root``.
    """

    def __init__(
        self,
        root: Path,
        port: int = 0,
        bin: Path | None = None,
        conf: Mapping[str, object] | None = None,
        log: Path | None = None,
    ):
        self.port = port
        self._account = os_account.unprivileged()
        self.home = cluster_location.home(root.resolve(), self._account)
        self._bin, self._conf, self._log = bin, dict(conf or {}), log or self.home / "postgresql.log"
        self._cluster = Cluster(self.home, self._account)
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def dsn(self, database: str = "postgres", role: str = SUPERUSER) -> str:
        """URL of a database. A ``role`` gets its password here, before it is created on the server."""
        who = f"{role}:{self._cluster.password(role)}"
        return f"postgresql://{who}@127.0.0.1:{self.port}/{quote(database, safe='')}"

    def start(self) -> None:
        """Start and wait until the server accepts connections. Raises ServerFailed."""
        folder = binaries.runnable(self._bin or binaries.postgresql(), self._account, self.home)
        self._cluster.make(folder)
        give_way(self._cluster.data)
        self.port = self.port if self._child else ports.kept_or_free(self.port)  # clients already know the port
        self._cluster.configure(self._settings())
        self._spawn(folder)
        self._wait()

    def stop(self) -> None:
        """Shut down fast, then immediately: sessions end, their transactions roll back."""
        if self._child:
            child_process.end(self._child, (signal.SIGINT, 30), (signal.SIGQUIT, 10))

    def _settings(self) -> dict[str, object]:
        return {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",  # a path may exceed the 107 bytes of a socket name
            "timezone": "UTC",
            "log_timezone": "UTC",
            "log_line_prefix": "%m [%p] %q%a@%d ",
            "max_connections": 200,
            "max_prepared_transactions": 20,
            **self._conf,
        }

    def _spawn(self, folder: Path) -> None:
        # SIGINT when we die: the cluster shuts down properly even after kill -9 of us
        self._child = child_process.spawn(
            [folder / "postgres", "-D", self._cluster.data],
            log=self._log,
            dies_with=signal.SIGINT,
            cwd=self.home,
            **self._account.popen(self.home),
        )

    def _wait(self) -> None:
        assert self._child
        deadline = time.monotonic() + _START
        while not is_ready(self._cluster.data, self._child.pid):
            if self._child.poll() is not None:
                raise ServerFailed(f"PostgreSQL did not start; its log {self._log} ends:\n{self._tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"PostgreSQL took more than {_START:.0f} s to start: see {self._log}.")
            time.sleep(0.02)

    def _tail(self) -> str:
        return "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-6:])

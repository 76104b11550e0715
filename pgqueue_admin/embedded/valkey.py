"""A Valkey server as our child process: Celery's broker. It persists nothing: no work depends on a broker message."""

import secrets
import signal
import subprocess
import time
from pathlib import Path

from pgqueue_admin.embedded import binaries, ports
from pgqueue_admin.embedded.errors import ServerFailed
from pgqueue_admin.osproc import child_process

_START = 10.0


class Valkey:
    """A server on 127.0.0.1. Each object has a new password; once started, the server keeps its port."""

    def __init__(self, root: Path, port: int = 0, log: Path | None = None):
        self.port = port
        self._root, self._log = root, log or root / "valkey.log"
        self._password = secrets.token_urlsafe(24)
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    @property
    def url(self) -> str:
        return f"redis://:{self._password}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start and wait until the server accepts connections. Raises ServerFailed."""
        self._root.mkdir(parents=True, exist_ok=True)
        self.port = self.port if self._child else ports.kept_or_free(self.port)  # clients already know the port
        self._child = child_process.spawn([binaries.valkey(), self._configuration()], log=self._log, cwd=self._root)
        self._wait()

    def stop(self) -> None:
        if self._child:
            child_process.end(self._child, (signal.SIGTERM, 5))

    def _configuration(self) -> Path:
        path = self._root / "valkey.conf"
        path.touch(mode=0o600)  # a file, because any account can read a command line
        lines = ["bind 127.0.0.1", f"port {self.port}", f"requirepass {self._password}", 'save ""', "appendonly no"]
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
        return path.resolve()

    def _wait(self) -> None:
        deadline = time.monotonic() + _START
        while not ports.answers(self.port):
            if not self.running or time.monotonic() > deadline:
                raise ServerFailed(f"Valkey did not start: see {self._log}.")
            time.sleep(0.02)

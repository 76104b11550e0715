"""A MariaDB server of a test run: Debian's, in its own folder, run by the tests' account; starts in two seconds."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.waiting import until

MISSING = (
    "No MariaDB: install Debian's packages mariadb-server-core and mariadb-client-core (as root .ci/run does), "
    "or have mariadbd, mariadb-install-db and mariadb on the PATH."
)
# Commits are written at once and flushed each second: they survive the process, but not the machine.
_QUICK = ("--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M")
_FOLDERS = f"{os.environ.get('PATH', '')}:/usr/sbin"


class MariaDB:
    """``root`` has all rights without a password, over a socket that only this account reaches."""

    def __init__(self, folder: Path):
        self._data, self.socket = folder / "data", folder / "socket"
        self._log = folder / "log"
        # A starting server deletes the temporary tables in its folder; in /tmp these would be another run's too.
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0

    def install(self) -> None:
        command = [_program("mariadb-install-db"), "--no-defaults", *self._folders(), "--skip-test-db"]
        command += ["--auth-root-authentication-method=normal", *_account()]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        command = [_program("mariadbd"), "--no-defaults", *self._folders(), f"--socket={self.socket}"]
        command += ["--skip-networking", "--event-scheduler=ON", f"--log-error={self._log}", *_QUICK, *_account()]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self._answers, what=f"it starts: see {self._log}")

    def kill(self) -> None:
        """Kill the process. Committed data is there after ``start``."""
        assert self._process
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait(60)

    def run(self, script: str, database: str = "") -> str:
        """Run the script as a DBA would, through the client, which stops at the first error. Return its output."""
        done = self._client(script, "--batch", "--skip-column-names", "--binary-mode", "--database", database)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def database(self) -> Iterator[str]:
        """Create a database; return its name."""
        self._made += 1
        name = f"test_{self._made}"
        self.run(f"create database {name} character set utf8mb4")
        yield name
        self.run(f"drop database {name}")

    def dsn(self, database: str) -> str:
        return f"mysql://root@localhost/{database}?unix_socket={quote(str(self.socket), safe='')}"

    def _folders(self) -> list[str]:
        return [f"--datadir={self._data}", f"--tmpdir={self._temporary}"]

    def _answers(self) -> bool:
        return self._client("select 1").returncode == 0

    def _client(self, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        command = [_program("mariadb"), "--no-defaults", f"--socket={self.socket}", "--user=root", *options]
        command.append("--default-character-set=utf8mb4")
        return subprocess.run(command, input=script, capture_output=True, text=True)


def _account() -> list[str]:
    """As root, the server starts only with this option."""
    return ["--user=root"] if os.geteuid() == 0 else []


def _program(name: str) -> str:
    found = shutil.which(name, path=_FOLDERS)
    if not found:
        pytest.fail(MISSING, pytrace=False)
    return found


@contextmanager
def mariadb() -> Iterator[MariaDB]:
    folder = Path(tempfile.mkdtemp(prefix="pgqueue-mariadb-"))
    server = MariaDB(folder)
    try:
        server.install()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)

"""A PostgreSQL cluster on disk: made by initdb, configured, owned by the server's account."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pgqueue_admin.embedded import binaries
from pgqueue_admin.embedded.errors import ServerFailed
from pgqueue_admin.embedded.os_account import OsAccount

SUPERUSER = "postgres"  # for administration; programs have a role of their own with only the rights they need
_INCLUDE = "include_if_exists 'pgqueue.conf'\n"


class Cluster:
    """The files below ``root``: data, and a password for each role."""

    def __init__(self, root: Path, account: OsAccount):
        self.root, self.account = root, account
        self.data = root / "data"
        self._superusers = self._password_file(SUPERUSER)

    def password(self, role: str) -> str:
        """Return the role's password; made on first use and kept."""
        file = self._password_file(role)
        if not file.exists():
            self._write(file, secrets.token_urlsafe(24))
        return file.read_text(encoding="ascii")

    def make(self, folder: Path) -> None:
        """Run initdb once; a killed one leaves no half cluster. Refuses a cluster of another major version."""
        version = self.data / "PG_VERSION"
        if not version.exists():
            self._initdb(folder)
        if not self._superusers.exists():
            raise ServerFailed(
                f"The cluster in {self.data} is of an earlier version, whose programs were superusers there: "
                "start afresh with `make reset`."
            )
        made_by = version.read_text(encoding="ascii").strip()
        if made_by != binaries.major(folder):
            raise ServerFailed(
                f"The cluster in {self.data} was made by PostgreSQL {made_by}, but {folder} is "
                f"{binaries.major(folder)}: set PGQUEUE_PG_BIN to the old one, or start afresh with `make reset`."
            )

    def configure(self, conf: Mapping[str, object]) -> None:
        lines = (f"{name} = '{str(value).replace(chr(39), chr(39) * 2)}'\n" for name, value in conf.items())
        self._write(self.data / "pgqueue.conf", "".join(lines))

    def _initdb(self, folder: Path) -> None:
        self.password(SUPERUSER)
        half = self.root / "data.half"
        shutil.rmtree(half, ignore_errors=True)
        options = ["-U", SUPERUSER, "--pwfile", self._superusers, "--auth=scram-sha-256", "-E", "UTF8"]
        # C.UTF-8: the wheel has no ICU; -N: a crash during initdb means initdb again, so fsync buys nothing
        self._run(folder / "initdb", "-D", half, *options, "--locale=C.UTF-8", "-N")
        with (half / "postgresql.conf").open("a", encoding="utf-8") as conf:
            conf.write(f"\n{_INCLUDE}")
        half.rename(self.data)

    def _password_file(self, role: str) -> Path:
        return self.root / f"{role}.password"

    def _write(self, path: Path, text: str) -> None:
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        self.account.own(path)

    def _run(self, *argv: object) -> None:
        done = subprocess.run(
            [os.fspath(part) if isinstance(part, Path) else str(part) for part in argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.root,
            **self.account.popen(self.root),
        )
        if done.returncode:
            raise ServerFailed(f"{argv[0]} failed:\n{done.stdout}")

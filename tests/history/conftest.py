"""One Spark session for all tests, a driver that uses it, and a class archive for drivers that start anew."""

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.runtime import jvm_cds, jvm_watchdog
from pgqueue_admin.osproc import idle_cgroup
from pgqueue_admin.osproc.child_process import kill_session
from tests.databases import Databases
from tests.history.standby import following
from tests.own_server import own_server
from tests.waiting import PATIENCE, until


@pytest.fixture(autouse=True)
def unwatched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Java a driver has no watchdog: it would expire after 300 s, in the middle of another test."""
    if request.node.get_closest_marker("spark") is None:
        monkeypatch.setattr(jvm_watchdog, "JvmWatchdog", lambda: None)


@pytest.fixture
def archived_console(databases: Databases) -> Iterator[str]:
    """With every recorded message, for history reads them all."""
    with databases.clone("whole_archived_console") as dsn, databases.as_django(dsn):
        yield dsn


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The class archive that a driver's child creates, once per test run; None if this Java cannot have one."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    scratch = shared / "classes of Spark"  # PGQUEUE_STATE_DIR may contain spaces too
    scratch.mkdir(exist_ok=True)
    wanted = jvm_cds.place(scratch)
    with (shared / "classes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if wanted is not None and not wanted.exists():
            make(scratch, wanted)
    return wanted


def make(scratch: Path, wanted: Path) -> None:
    """It runs at idle priority, which on a busy machine never gets a processor: here it has an ordinary share."""
    child = jvm_cds.begin(scratch, wanted)

    def has_ended() -> bool:
        idle_cgroup.insist()
        return child.poll() is not None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_cgroup, "_TENTH", {"cpu.shares": "1024", "cpu.weight": "100"})
        try:
            until(has_ended, PATIENCE * 10, "the archive of classes is made")
        finally:
            idle_cgroup.stand_back()
            kill_session(child)
    assert child.returncode == 0, (scratch / "class_archive.log").read_text()


@pytest.fixture
def var(tmp_path: Path, classes: Path | None) -> Path:
    """PGQUEUE_STATE_DIR of drivers that start repeatedly, with the class archive already made."""
    scratch = tmp_path / "var/spark"
    scratch.mkdir(parents=True)
    lay_ready(classes, scratch)
    return scratch.parent


def lay_ready(classes: Path | None, scratch: Path) -> None:
    if classes is not None:
        os.link(classes, scratch / classes.name)


@pytest.fixture(scope="session")
def spark(classes: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pgqueue_admin.history.spark.session import session

    scratch = tmp_path_factory.mktemp("spark")
    lay_ready(classes, scratch)
    started = session("local[2,4]", scratch)
    yield started
    started.stop()


@pytest.fixture
def driver(spark: Any, history: Path) -> Callable[..., BatchLoop]:
    def make(**changes: Any) -> BatchLoop:
        return BatchLoop("test", spark=spark, **changes)

    return make


@pytest.fixture
def database(console_database: str, connect: Callable[[str], Any]) -> Any:
    return connect(console_database)


@pytest.fixture
def follower(server: PostgreSQL, console_database: str) -> Iterator[PostgreSQL]:
    """A standby of this run's server, with this test's database."""
    with following(server) as made:
        yield made


@pytest.fixture
def restarted() -> Iterator[PostgreSQL]:
    """A server of the queues alone, which tests may restart or crash: its log reaches the disk late."""
    with own_server({"fsync": "off", "wal_writer_delay": "2s"}) as server:
        yield server

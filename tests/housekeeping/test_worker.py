"""A real Celery worker and beat on a real broker: started work is done, even if the worker is killed (C4)."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.embedded.valkey import Valkey
from pgqueue_admin.housekeeping.celery_heartbeat import RunningTasks
from pgqueue_admin.models import Operation, Process
from pgqueue_admin.services.operations import lifecycle, selection
from tests.archived_messages import events_of
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
WORKER = ("worker", "--pool", "threads", "--concurrency", "2", "--without-gossip", "--without-mingle")
BEAT = ("beat", "--pidfile=")
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(archived_console: str, tmp_path: Path) -> Iterator[Start]:
    """``start(*WORKER)``: start Celery in a process of its own, which ends with the test."""
    broker = Valkey(tmp_path / "valkey")
    broker.start()
    given = {"DATABASE_URL": archived_console, "QUEUES_URL": archived_console, "CELERY_BROKER_URL": broker.url}
    given |= {"PGQUEUE_QUEUE_SCHEMAS": "public,Legacy", "PGQUEUE_STATE_DIR": str(tmp_path), "PATH": os.environ["PATH"]}
    given["DJANGO_SETTINGS_MODULE"] = "pgqueue_admin.config.settings"
    started: list[subprocess.Popen[bytes]] = []

    def start(*argv: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "celery", "-A", "pgqueue_admin.config.celery", *argv]
        with (tmp_path / f"{argv[0]}.log").open("ab") as log:
            started.append(subprocess.Popen(command, cwd=ROOT, env=given, stdout=log, stderr=log))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(60)
    broker.stop()


def test_a_killed_worker_costs_seconds_and_nothing_else(start: Start, tmp_path: Path) -> None:
    start(*BEAT)
    first = start(*WORKER)
    operation = selection.freeze("retry", ArchiveFilter(), "ana", "console")
    lifecycle.start(operation.pk, "ana")

    def now() -> Operation:
        operation.refresh_from_db()
        return operation

    until(lambda: now().done, what="the first chunk")
    first.send_signal(signal.SIGKILL)
    first.wait(60)
    start(*WORKER)
    until(lambda: now().state == Operation.State.DONE, what="the rest by the second worker")
    assert (operation.count, operation.done, operation.skipped, operation.failed) == (2597, 2570, 0, 27)
    assert events_of(operation.pk) == 2570
    assert (tmp_path / "worker.log").read_text().count("run_operations") < 20, "a line a second would bury the log"


def test_worker_and_beat_report_like_every_other_process(start: Start, tmp_path: Path) -> None:
    worker, beat = start(*WORKER), start(*BEAT)
    row = until(lambda: Process.objects.filter(role="celery-worker", handled__gt=0).first(), what="the worker's row")
    assert row is not None
    assert (row.pid, row.state, row.slots, row.ended_at) == (worker.pid, "running", 2, None)
    assert row.memory_bytes > 10_000_000
    assert row.code_version
    assert row.busy_share is not None
    until(lambda: Process.objects.filter(role="celery-beat", pid=beat.pid, state="running"), what="beat's row")
    worker.send_signal(signal.SIGKILL)
    worker.wait(60)
    start(*WORKER)
    until(lambda: Process.objects.filter(pk=row.pk, state="lost"), what="the killed one is closed by its successor")
    beat.terminate()
    until(lambda: Process.objects.filter(role="celery-beat", state="stopped"), what="beat says that it ends")


# What Celery's worker logs of its tasks.
def test_an_error_is_told_with_its_time() -> None:
    tasks, before = RunningTasks(), datetime.now(UTC)
    assert tasks.row(2)["last_error_at"] is None
    tasks.broke(exception=ValueError("no"))
    row = tasks.row(2)
    assert row["last_error"] == "a task: ValueError: no"
    assert before <= row["last_error_at"] <= datetime.now(UTC)

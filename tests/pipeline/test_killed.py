"""kill -9 while a batch is written: what it left counts for nothing, and the next try makes it whole."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from pgqueue_admin.pipeline import sweep
from pgqueue_admin.records.models import HistoryBatch, HistoryFile, Rollup
from tests.waiting import until

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]


def start(dsn: str, folder: Path) -> "subprocess.Popen[bytes]":
    environ = {**os.environ, "DATABASE_URL": dsn, "HISTORY_DIR": str(folder), "PGQUEUE_VAR": str(folder / "var")}
    environ["SPARK_MASTER"] = "local[2,4]"
    environ["DJANGO_SETTINGS_MODULE"] = "pgqueue_admin.config.worker_settings"
    command = [sys.executable, "manage.py", "pipeline", "run"]
    return subprocess.Popen(command, cwd=ROOT, env=environ, start_new_session=True)


def test_killed_while_it_writes(archived_console: str, tmp_path: Path) -> None:
    ours = sessions()
    first = start(archived_console, tmp_path)
    until(lambda: list(tmp_path.glob("v1/batch-*")), 240, "the first attempt writes")
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    until(lambda: sessions() <= ours, what="the server has come to the end of what it was sent")
    state = HistoryBatch.objects.get().state
    assert state in {"running", "done"}
    was_done = state == "done"

    second = start(archived_console, tmp_path)
    assert second.wait(240) == 0
    batch = HistoryBatch.objects.get()
    assert (batch.state, batch.attempt) == ("done", 1 if was_done else 2)
    assert batch.kept == batch.rows == 2597
    assert sum(row.messages for row in Rollup.objects.filter(grain="day")) == 2597
    whole_and_alone(tmp_path, was_done)


def sessions() -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'"
        )
        return {pid for (pid,) in cursor.fetchall()}


def whole_and_alone(folder: Path, was_done: bool) -> None:
    """The manifest's files are there; what the killed attempt left is swept once it is old."""
    named = set(HistoryFile.objects.values_list("path", flat=True))
    assert named <= {str(path.relative_to(folder)) for path in folder.glob("v1/*/day=*/*.parquet")}
    assert sweep.sweep(folder, now=later(folder)) == (0 if was_done else 1)
    assert named == {str(path.relative_to(folder)) for path in folder.glob("v1/*/day=*/*.parquet")}


def later(folder: Path) -> float:
    newest = max(place.stat().st_mtime for place in folder.glob("v1/batch-*"))
    return newest + sweep.OLD + 1

"""kill -9 at each named point of a batch and a recompute, beside writers, and of a compaction: unfinished work does not
count.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from django.contrib.auth.models import User

from pgqueue_admin.history.storage import orphan_cleanup
from pgqueue_admin.models import (
    DataFile,
    HistoryBatch,
    HistoryCompaction,
    Queue,
    RecomputeRequest,
    Rollup,
    history_requests,
)
from tests.history.expected_counts import compared, noted
from tests.history.pause_points import COMPACTED, POINTS, RECOMPUTED, Point, held_at, is_waited_for
from tests.history.writers import writing_on
from tests.waiting import until

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]
PLANNED, LAST = POINTS[0], POINTS[-1]
WRITERS = 2


def start(dsn: str, folder: Path) -> "subprocess.Popen[bytes]":
    environ = {
        **os.environ,
        "DATABASE_URL": dsn,
        "PGQUEUE_HISTORY_DIR": str(folder),
        "PGQUEUE_STATE_DIR": str(folder / "var"),
    }
    environ["SPARK_MASTER"] = "local[2,4]"
    environ["DJANGO_SETTINGS_MODULE"] = "pgqueue_admin.config.base_settings"
    command = [sys.executable, "manage.py", "history", "run"]
    return subprocess.Popen(command, cwd=ROOT, env=environ, start_new_session=True)


@pytest.mark.usefixtures("var")
def test_killed_at_each_point(archived_console: str, tmp_path: Path, connect: Callable[[str], Any]) -> None:
    """Each driver is killed one step later than the previous one; the last one completes."""
    Queue.objects.create(schema="public", table="audit", kind="audit")
    database = connect(archived_console)
    database.run(ALL_FILES_ARE_OLD)
    noted(database)
    with writing_on(archived_console, WRITERS):
        for point in POINTS:
            killed_at(point, database, archived_console, tmp_path)
            first = HistoryBatch.objects.get()
            assert (first.state == "done") == (point is LAST), point.name
            assert DataFile.objects.exists() == Rollup.objects.exists() == (point is LAST), point.name
        killed_in_a_recompute(database, archived_console, tmp_path)
    killed_in_a_compaction(database, archived_console, tmp_path)
    assert start(archived_console, tmp_path).wait(600) == 0
    first.refresh_from_db()
    assert [batch.state for batch in HistoryBatch.objects.all()] == ["done", "done", "done"]
    assert [each.state for each in HistoryCompaction.objects.order_by("pk")] == ["abandoned", "done"]
    assert Rollup.objects.filter(
        batch=None, at__date=RecomputeRequest.objects.get(is_wanted=False, error="").day
    ).exists()
    assert first.attempt == len(POINTS) - 1  # planning alone began no attempt, and the last driver found the work done
    whole_and_alone(tmp_path, database)
    what_was_committed_meanwhile_is_counted(database)
    assert len(list(tmp_path.glob("var/spark/driver-*"))) == 1, "what the killed ones needed is gone"


def killed_at(point: Point, database: Any, dsn: str, folder: Path) -> None:
    is_there = HistoryBatch.objects.exists if point is PLANNED else lambda: is_waited_for(database)
    with held_at(point, database):
        driver = start(dsn, folder)
        until(lambda: is_there() or driver.poll() is not None, 600, f"it is {point.name}")
        assert driver.poll() is None, f"it ended before it was {point.name}"
        assert point is not LAST or list(folder.glob("var/spark/driver-*/*.so")), "where things may be executed"
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()


def killed_in_a_recompute(database: Any, dsn: str, folder: Path) -> None:
    """Old figures are deleted only in its transaction; the next driver recomputes the day."""
    file = DataFile.objects.filter(dataset="history").earliest("day")
    assert file.day
    before = Rollup.objects.count()
    history_requests.recompute(User(username="ana"), "console", file.day, file.day)
    killed_at(RECOMPUTED, database, dsn, folder)
    assert RecomputeRequest.objects.get().is_wanted
    assert (Rollup.objects.count(), Rollup.objects.filter(batch=None).exists()) == (before, False)


def killed_in_a_compaction(database: Any, dsn: str, folder: Path) -> None:
    """Its file is written, but history is unchanged."""
    database.run(MORE_OF_A_DAY)
    killed_at(COMPACTED, database, dsn, folder)
    assert HistoryCompaction.objects.get().state == "running"
    assert list(folder.glob("v3/table-*/day=*/*.parquet"))
    assert not DataFile.objects.filter(path__startswith="v3/table-").exists()


def whole_and_alone(folder: Path, database: Any) -> None:
    """Each committed row once, in files of the manifest; files of killed attempts are swept once old."""
    named = [str(folder / path) for path in DataFile.objects.values_list("path", flat=True)]
    found = pyarrow.dataset.dataset(named).to_table(["source", "seq"]).to_pylist()
    committed = {("messages.message_archive", row.seq) for row in database.all(ARCHIVED)}
    committed |= {('"public"."audit"', row.seq) for row in database.all("select seq from audit")}
    assert len(found) == len(committed)
    assert {(row["source"], row["seq"]) for row in found} == committed
    for grain in ("minute", "hour", "day"):
        assert sum(row.messages for row in Rollup.objects.filter(grain=grain)) == len(committed)
    assert {place.parents[1] for place in map(Path, named)} < set(folder.glob("v3/*-*"))
    assert orphan_cleanup.sweep(folder, now=later(folder))
    assert {place.parents[1] for place in map(Path, named)} == set(folder.glob("v3/*-*"))
    assert sorted(named) == sorted(map(str, folder.glob("v3/*/day=*/*.parquet")))


def what_was_committed_meanwhile_is_counted(database: Any) -> None:
    for what, found in compared(database).items():
        assert found.rows, f"no {what} at all"
        assert not found.wrong, f"{what}: {found.wrong[:5]} of {len(found.wrong)}"


ARCHIVED = "select seq from messages.message_archive where kind <> 'control'"
ALL_FILES_ARE_OLD = """
create function long_ago() returns trigger language plpgsql as
    'begin new.added_at := now() - interval ''2 hours''; return new; end';
create trigger old before insert on pgqueue_console.pgqueue_datafile for each row execute function long_ago()
"""
MORE_OF_A_DAY = """
insert into messages.message_archive (created_at, message, result, handled_by, kind, queue, headers, body, died_at)
select created_at, message, result, handled_by, kind, queue, headers, body, died_at
from messages.message_archive where kind <> 'control' order by seq limit 1
"""


def later(folder: Path) -> float:
    newest = max(place.stat().st_mtime for place in folder.glob("v3/**/*"))
    return newest + orphan_cleanup.OLD + 1

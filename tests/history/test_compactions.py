"""Many files become one: when, how many at once, and that the manifest changes completely or not at all. No Spark."""

import os
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.history import ledger
from pgqueue_admin.history.storage import compactions, orphan_cleanup
from pgqueue_admin.history.storage.compactions import FULL, LONGEST, MANY, REST, DueCompaction
from pgqueue_admin.history.storage.layout import of_compaction
from pgqueue_admin.history.storage.retention import retain
from pgqueue_admin.models import (
    DataFile,
    FileBatch,
    HistoryBatch,
    HistoryCompaction,
    database_clock,
    history_requests,
)
from tests.history.rollup_factory import batch

DAY = date(2026, 11, 21)
Make = Callable[..., list[DataFile]]


@pytest.fixture
def files(console_database: str, tmp_path: Path) -> Make:
    """So many new files of a day, each with two rows of its own batch."""

    def make(number: int, day: date = DAY, version: str = "v3", **changes: Any) -> list[DataFile]:
        return [made(tmp_path, version, day, batch(), **changes) for _ in range(number)]

    return make


def made(folder: Path, version: str, day: date, of: HistoryBatch, **changes: Any) -> DataFile:
    path = f"{version}/batch-{of.pk}/day={day}/part.parquet"
    (folder / path).parent.mkdir(parents=True)
    (folder / path).write_bytes(b"PAR1")
    file = DataFile(**{"source": of.source, "path": path, "day": day, "rows": 2, "bytes": 4, **changes})
    of.kept = file.rows
    of.save()
    ledger._name(of, [file])
    return file


def together(due: DueCompaction, name: str = "one") -> DataFile:
    rows = sum(file.rows for file in due.files)
    return DataFile(source=due.source, path=f"v3/table-1/{name}.parquet", day=due.day, rows=rows, bytes=6)


def due(**changes: Any) -> DueCompaction:
    found = compactions.due(database_clock.now(), **changes)
    assert found is not None
    return found


def test_many_are_due_and_two_when_no_more_come(files: Make) -> None:
    files(MANY - 1)
    assert compactions.due(database_clock.now()) is None
    later = compactions.due(database_clock.now() + REST + timedelta(seconds=5))
    assert later is not None
    assert (later.day, len(later.files)) == (DAY, MANY - 1)
    files(1)
    assert len(due().files) == MANY


def test_single_full_or_version_1_files_are_not_compacted(files: Make) -> None:
    files(1)
    files(MANY, bytes=FULL)
    files(MANY, version="v1")
    assert compactions.due(database_clock.now() + 2 * REST) is None


def test_no_more_at_once_than_fills_a_file(files: Make) -> None:
    files(MANY, bytes=FULL // 4)
    assert len(due().files) == 4


def test_the_manifest_changes_whole(files: Make) -> None:
    """Its rows count as many of each batch as before; the day can still be recomputed."""
    old = files(3)
    found = due(many=3)
    compaction = compactions.begin(found)
    assert DataFile.objects.count() == 3
    new = together(found)
    compactions.done(compaction, found, new)
    assert list(DataFile.objects.values_list("path", "rows")) == [(new.path, 6)]
    assert list(FileBatch.objects.values_list("file", "rows")) == [(new.pk, 2)] * len(old)
    assert history_requests.recompute(User(username="ana"), "console", DAY, DAY) == ([DAY], 0)
    compaction.refresh_from_db()
    assert (compaction.state, compaction.files, compaction.bytes_before, compaction.bytes_after) == ("done", 3, 12, 6)


def test_two_at_once_change_it_once(files: Make) -> None:
    files(3)
    found = due(many=3)
    slow = compactions.begin(found)
    quick = compactions.begin(found)
    with pytest.raises(ledger.Superseded):
        compactions.done(slow, found, together(found, "slow"))
    compactions.done(quick, found, together(found, "quick"))
    assert [file.path for file in DataFile.objects.all()] == ["v3/table-1/quick.parquet"]


def test_files_removed_by_retention_abort_their_compaction(files: Make, tmp_path: Path) -> None:
    files(3)
    found = due(many=3)
    compaction = compactions.begin(found)
    assert retain(tmp_path, 1, DAY + timedelta(days=9)) == 3
    with pytest.raises(ledger.Superseded):
        compactions.done(compaction, found, together(found))
    assert not DataFile.objects.exists()


def test_a_cancelled_one_changes_nothing_and_rests(files: Make) -> None:
    files(3)
    found = due(many=3)
    compaction = compactions.begin(found)
    assert history_requests.cancel(User(username="ana"), "console") == (0, 1, 0)
    with pytest.raises(ledger.Superseded):
        compactions.done(compaction, found, together(found))
    assert DataFile.objects.count() == 3
    assert compactions.due(database_clock.now(), many=3) is None
    assert compactions.due(database_clock.now() + REST + timedelta(seconds=5), many=3) is not None


def test_compacted_files_are_swept_after_an_hour(files: Make, tmp_path: Path) -> None:
    """However old the files: a reader that has just read the manifest still needs them."""
    files(3)
    for path in tmp_path.rglob("*"):
        os.utime(path, (0, 0))
    found = due(many=3)
    compaction = compactions.begin(found)
    for file in found.files:
        os.utime(tmp_path / file.path)
    compactions.done(compaction, found, together(found))
    newest = max(path.stat().st_mtime for path in tmp_path.rglob("*.parquet"))
    assert orphan_cleanup.sweep(tmp_path, newest + orphan_cleanup.OLD - 1) == 0
    assert orphan_cleanup.sweep(tmp_path, newest + orphan_cleanup.OLD + 1) == 3
    assert not list(tmp_path.rglob("*.parquet"))


def test_the_folder_of_one_that_runs_stays_until_it_can_no_longer_commit(files: Make, tmp_path: Path) -> None:
    files(3)
    found = due(many=3)
    compaction = compactions.begin(found)
    place = of_compaction(tmp_path, found.source.pk, DAY, compaction.token)
    place.mkdir(parents=True)
    old = place.stat().st_mtime + orphan_cleanup.OLD + 1
    assert orphan_cleanup.sweep(tmp_path, old) == 0
    HistoryCompaction.objects.update(started_at=database_clock.now() - timedelta(seconds=LONGEST + 1))
    assert orphan_cleanup.sweep(tmp_path, old) == 1
    with pytest.raises(ledger.Superseded):
        compactions.done(compaction, found, together(found))

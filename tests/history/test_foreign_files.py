"""Files that another ledger may name: another console's, or one lost in a restored backup. No Spark."""

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections

from pgqueue_admin.history import ledger
from pgqueue_admin.history.storage import depth_files, orphan_cleanup
from pgqueue_admin.history.storage.layout import of_attempt, of_compaction, of_events
from pgqueue_admin.history.storage.orphan_cleanup import sweep
from pgqueue_admin.models import (
    DataFile,
    DepthBucket,
    FileToken,
    HistoryBatch,
    HistoryCompaction,
    HistorySource,
)
from tests.history.rollup_factory import batch

DAY = date(2026, 11, 21)


def written(place: Path) -> Path:
    """A file in that folder, older than the sweep's limit."""
    path = place / f"day={DAY}" / "part.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1")
    for each in (path, *path.parents[:2]):
        os.utime(each, (0, 0))
    return path


def attempt(of: HistoryBatch, folder: Path) -> tuple[UUID, Path]:
    token = ledger.begin(of, "test")
    return token, written(of_attempt(folder, of.pk, token))


def ended(of: HistoryBatch, folder: Path) -> Path:
    token, path = attempt(of, folder)
    place = str(path.relative_to(folder))
    ledger.done(of, token, 1, {}, [DataFile(source=of.source, path=place, day=DAY, rows=1, bytes=4)], [])
    return path


def open_batch() -> HistoryBatch:
    made = batch()
    HistoryBatch.objects.filter(pk=made.pk).update(state="planned")
    made.refresh_from_db()
    return made


def test_files_of_a_killed_attempt_go_and_named_ones_stay(console_database: str, tmp_path: Path) -> None:
    one = open_batch()
    killed = attempt(one, tmp_path)[1]
    kept = ended(one, tmp_path)
    assert sweep(tmp_path) == 1
    assert (killed.exists(), kept.exists()) == (False, True)


def test_file_committed_during_the_sweep_stays(console_database: str, tmp_path: Path) -> None:
    """Its attempt paused for long: in progress at the first look, in the manifest at the second."""
    one = open_batch()
    token, path = attempt(one, tmp_path)
    place, left = str(path.relative_to(tmp_path)), [True]

    def commits_after_the_first(execute: Any, sql: str, *rest: Any) -> Any:
        answer = execute(sql, *rest)
        if left and ("LIKE" in sql or '"token" =' in sql):
            left.clear()
            file = DataFile(source=one.source, path=place, day=DAY, rows=1, bytes=4)
            ledger.done(one, token, 1, {}, [file], [])
        return answer

    with connections["default"].execute_wrapper(commits_after_the_first):
        assert sweep(tmp_path) == 0
    assert not left
    assert path.exists()


def test_an_empty_ledger_takes_nothing_away(
    console_database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """DATABASE_URL names another database, and PGQUEUE_HISTORY_DIR the folder with years of history."""
    years = [written(of_attempt(tmp_path, number, uuid4())) for number in (7, 8)]
    other = written(of_attempt(tmp_path, 7, uuid4(), "rejected-v1"))
    assert sweep(tmp_path) == 0
    assert all(path.exists() for path in [*years, other])
    assert "this ledger knows nothing of rejected-v1/batch-00000007-" in caplog.text
    assert "(3 in all)" in caplog.text


def test_a_ledger_that_was_put_back_takes_nothing_away(database: Any, tmp_path: Path) -> None:
    """A backup of the console's database was restored: it assigns the same batch numbers again."""
    number = database.value("select nextval('pgqueue_console.pgqueue_historybatch_id_seq')")
    named = ended(open_batch(), tmp_path)
    HistorySource.objects.all().delete()
    database.run("select setval('pgqueue_console.pgqueue_historybatch_id_seq', %(number)s)", {"number": number})
    again = open_batch()
    assert named.parents[1].name.startswith(f"batch-{again.pk:08}-")
    killed = attempt(again, tmp_path)[1]
    kept = ended(again, tmp_path)
    assert sweep(tmp_path) == 0
    assert all(path.exists() for path in (named, killed, kept))


@pytest.mark.parametrize("is_known", [True, False])
def test_a_day_that_was_compacted_since_the_backup_is_in_files_yet(
    is_known: bool, console_database: str, tmp_path: Path
) -> None:
    """The files it was made from are gone: only it has all their rows."""
    source, token = batch().source, uuid4()
    if is_known:
        about = {"files": 2, "rows": 4, "bytes_before": 8, "state": "abandoned"}
        HistoryCompaction.objects.create(source=source, day=DAY, token=token, **about)
    path = written(of_compaction(tmp_path, source.pk, DAY, token))
    assert sweep(tmp_path) == is_known
    assert path.exists() is not is_known


def test_of_a_batch_that_an_older_version_tried_any_attempt_may_be(console_database: str, tmp_path: Path) -> None:
    """It recorded no token; its files are swept as before."""
    one = open_batch()
    HistoryBatch.objects.filter(pk=one.pk).update(attempt=1)
    killed = written(of_attempt(tmp_path, one.pk, uuid4()))
    attempt(one, tmp_path)
    HistoryBatch.objects.filter(pk=one.pk).update(state="planned", token=None)
    assert sweep(tmp_path) == 2
    assert not killed.exists()


def test_each_attempt_is_noted_with_its_batch(console_database: str) -> None:
    one = open_batch()
    tokens = [ledger.begin(one, "test") for _ in range(3)]
    one.refresh_from_db()
    assert (one.attempt_tokens, one.attempt) == (tokens, 3)


NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def depth_of_a_day(folder: Path) -> Path:
    """A depth file of one day, as a console with samples alone writes it, older than the sweep's limit."""
    for at in (NOON, NOON + timedelta(days=1)):
        DepthBucket.objects.create(grain="minute", at=at, queue=0, low=1, median=2, high=3)
    assert depth_files.keep(folder) == NOON.date()
    path = folder / DataFile.objects.get(dataset="depth").path
    for each in (path, path.parent):
        os.utime(each, (0, 0))
    return path


def test_depth_that_another_console_filed_stays(
    console_database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Both have samples alone and share a folder: neither knows the other's batches."""
    theirs = depth_of_a_day(tmp_path)
    for rows in (DataFile, FileToken, DepthBucket):
        rows.objects.all().delete()
    ours = depth_of_a_day(tmp_path)
    assert ours.parent == theirs.parent
    assert sweep(tmp_path) == 0
    assert (ours.exists(), theirs.exists()) == (True, True)
    assert f"this ledger knows nothing of {theirs.relative_to(tmp_path)} in it (1 in all)" in caplog.text


def test_depth_that_a_killed_driver_left_goes(console_database: str, tmp_path: Path) -> None:
    left = depth_of_a_day(tmp_path)
    DataFile.objects.all().delete()
    DepthBucket.objects.all().delete()
    kept = depth_of_a_day(tmp_path)
    assert sweep(tmp_path) == 1
    assert (left.exists(), kept.exists()) == (False, True)


@pytest.mark.parametrize("is_known", [True, False])
def test_events_that_nobody_names_go_if_this_ledger_began_them(
    is_known: bool, console_database: str, tmp_path: Path
) -> None:
    token = orphan_cleanup.noted() if is_known else uuid4()
    path = of_events(tmp_path, DAY, token)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1")
    for each in (path, path.parent):
        os.utime(each, (0, 0))
    assert sweep(tmp_path) == is_known
    assert path.exists() is not is_known


def test_named_file_without_a_noted_token_stays(console_database: str, tmp_path: Path) -> None:
    """Nor is a folder removed that retention left empty."""
    kept = depth_of_a_day(tmp_path)
    FileToken.objects.all().delete()
    empty = of_events(tmp_path, DAY, uuid4()).parent
    empty.mkdir(parents=True)
    os.utime(empty, (0, 0))
    assert sweep(tmp_path) == 1
    assert (kept.exists(), empty.exists()) == (True, False)

"""Files are on disk with their folders before the manifest names them, and are verified by a different reader."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from pgqueue_admin.history.storage import depth_files
from pgqueue_admin.history.storage.manifest import manifest, read_back
from pgqueue_admin.models import DataFile, HistoryBatch, HistorySource
from tests.history.test_depth_files import DAY, NOON, folded


# Files are on disk with their folders before the manifest names them: a power cut leaves no named file empty.
@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The paths given to fsync, in order; fsync still runs."""
    asked: list[Path] = []
    fsync = os.fsync

    def ask(descriptor: int) -> None:
        asked.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", ask)
    return asked


def test_of_an_attempt(tmp_path: Path, settled: list[Path]) -> None:
    history, rejected = tmp_path / "v3/batch-1", tmp_path / "rejected-v1/batch-1"
    paths = [history / "day=2026-11-14/a.parquet", history / "day=2026-11-15/b.parquet", rejected / "c.parquet"]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pa.table({"seq": [1]}), path)
    named = list(manifest(HistoryBatch(source=HistorySource()), tmp_path, history, rejected))
    assert [tmp_path / file.path for file in named] == paths
    folders = {*(path.parent for path in paths), history, history.parent, rejected.parent, tmp_path}
    assert set(settled) == {*paths, *folders}
    assert all(settled.index(path) < settled.index(path.parent) for path in paths), "what it names comes first"


@pytest.mark.usefixtures("console_database")
def test_of_a_day_of_depths(tmp_path: Path, settled: list[Path]) -> None:
    folded(0, NOON)
    folded(0, NOON + DAY)
    depth_files.keep(tmp_path)
    path = tmp_path / DataFile.objects.get().path
    assert settled == [path, path.parent, path.parents[1], tmp_path]


# A different reader verifies an attempt's files: number of rows, which rows, duplicates.
LARGE = 2**62


def wrote(place: Path, name: str, *seqs: int | None) -> None:
    (place / name).parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"seq": pa.array(seqs, pa.int64()), "headers": ["{}"] * len(seqs)})
    pyarrow.parquet.write_table(table, place / name)


def test_rows_of_all_days_are_counted_told_apart_and_summed(tmp_path: Path) -> None:
    wrote(tmp_path, "day=2026-11-01/a.parquet", 1, 2, LARGE, LARGE + 1)
    wrote(tmp_path, "day=2026-11-02/b.parquet", 7)
    assert read_back(tmp_path) == (5, 5, 10 + 2 * LARGE + 1)


def test_a_row_that_is_twice_differs_from_no_other(tmp_path: Path) -> None:
    wrote(tmp_path, "day=2026-11-01/a.parquet", 1, 2)
    wrote(tmp_path, "day=2026-11-02/b.parquet", 2)
    assert read_back(tmp_path) == (3, 2, 5)


def test_a_row_without_a_number_is_none_of_those_that_differ(tmp_path: Path) -> None:
    wrote(tmp_path, "a.parquet", 1, None)
    assert read_back(tmp_path) == (2, 1, 1)


def test_absent_folder_reads_back_as_empty(tmp_path: Path) -> None:
    assert read_back(tmp_path / "absent") == (0, 0, 0)


def test_a_file_that_is_none_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    with pytest.raises(pa.ArrowInvalid):
        read_back(tmp_path)

"""What the manifest will name is on the disk before, with its folders: a power cut leaves no named file empty."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from pgqueue_admin.history.storage import depth_files
from pgqueue_admin.history.storage.manifest import manifest
from pgqueue_admin.models import DataFile, HistoryBatch, HistorySource
from tests.history.test_depth_files import DAY, NOON, folded


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What fsync was asked for, in order; it does its work."""
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

"""The files that an attempt wrote, as the manifest names them."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet

from pgqueue_admin.history.storage.layout import settle
from pgqueue_admin.models import DataFile, HistoryBatch, HistorySource

Dataset = DataFile.Dataset


def manifest(batch: HistoryBatch, folder: Path, history: Path, rejected: Path) -> Iterator[DataFile]:
    """Of history by day; of what was rejected, where anything was."""
    yield from of_days(batch.source, folder, history)
    for path in _settled(folder, rejected, "*.parquet"):
        yield _file(batch.source, folder, path, Dataset.REJECTED)


def of_days(source: HistorySource, folder: Path, place: Path) -> Iterator[DataFile]:
    for path in _settled(folder, place, "day=*/*.parquet"):
        yield _file(source, folder, path, Dataset.HISTORY, path.parent.name.removeprefix("day="))


def _settled(folder: Path, place: Path, which: str) -> list[Path]:
    paths = sorted(place.glob(which))
    settle(folder, paths)
    return paths


def _file(source: HistorySource, folder: Path, path: Path, dataset: str, day: str | None = None) -> DataFile:
    rows = pyarrow.parquet.read_metadata(path).num_rows
    place, size = str(path.relative_to(folder)), path.stat().st_size
    return DataFile(source=source, dataset=dataset, path=place, day=day, rows=rows, bytes=size)

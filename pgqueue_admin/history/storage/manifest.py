"""Manifest entries for the files of an attempt."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet
from pyarrow.parquet import ParquetFile

from pgqueue_admin.history.storage.layout import settle
from pgqueue_admin.models import DataFile, HistoryBatch, HistorySource

Dataset = DataFile.Dataset


def manifest(batch: HistoryBatch, folder: Path, history: Path, rejected: Path) -> Iterator[DataFile]:
    """History files by day, and the file of rejected rows, if any."""
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


# Reads the files of an attempt back, independently of the writer.
class ReadBack(NamedTuple):
    """``sum``: identifies the rows, beyond their number."""

    rows: int
    distinct: int
    sum: int


def read_back(place: Path) -> ReadBack:
    """Counts and sums ``seq``. Raises Arrow's error for an invalid file."""
    rows, found = 0, list[int]()
    for path in place.rglob("*.parquet"):
        column = ParquetFile(path).read(["seq"], use_threads=False)["seq"]
        rows += len(column)
        found += column.drop_null().to_pylist()
    return ReadBack(rows, len(set(found)), sum(found))

"""The manifest entries of the files that an attempt wrote."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet
from pyarrow.parquet import ParquetFile

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


# Which rows lie in the files of an attempt? Read back by another than the one that wrote them.
class ReadBack(NamedTuple):
    """``sum``: which rows they are, and not only how many."""

    rows: int
    distinct: int
    sum: int


def read_back(place: Path) -> ReadBack:
    """Of ``seq``. Raises what Arrow does of a file that is none."""
    rows, found = 0, list[int]()
    for path in place.rglob("*.parquet"):
        column = ParquetFile(path).read(["seq"], use_threads=False)["seq"]
        rows += len(column)
        found += column.drop_null().to_pylist()
    return ReadBack(rows, len(set(found)), sum(found))

"""The files that an attempt wrote, as the manifest names them."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet

from pgqueue_admin.records.models import HistoryBatch, HistoryFile

Dataset = HistoryFile.Dataset


def manifest(batch: HistoryBatch, folder: Path, history: Path, rejected: Path) -> Iterator[HistoryFile]:
    """Of history by day; of what was rejected, where anything was."""
    for path in sorted(history.glob("day=*/*.parquet")):
        yield _file(batch, folder, path, Dataset.HISTORY, path.parent.name.removeprefix("day="))
    for path in sorted(rejected.glob("*.parquet")):
        yield _file(batch, folder, path, Dataset.REJECTED)


def _file(batch: HistoryBatch, folder: Path, path: Path, dataset: str, day: str | None = None) -> HistoryFile:
    rows = pyarrow.parquet.read_metadata(path).num_rows
    place, size = str(path.relative_to(folder)), path.stat().st_size
    return HistoryFile(batch=batch, dataset=dataset, path=place, day=day, rows=rows, bytes=size)

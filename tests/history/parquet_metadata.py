"""Parquet's own metadata of files that were never rewritten."""

from pathlib import Path

import pyarrow
import pyarrow.dataset
import pyarrow.parquet

INSTANT = pyarrow.timestamp("us", "UTC")


def are_as_documented(files: list[Path]) -> None:
    """zstd, times in microseconds UTC, no INT96, sorted by endpoint and time (docs/reference/history-data.md)."""
    assert files
    for file in files:
        known = pyarrow.parquet.ParquetFile(file)
        groups = [known.metadata.row_group(number) for number in range(known.num_row_groups)]
        columns = [group.column(number) for group in groups for number in range(group.num_columns)]
        assert {column.compression for column in columns} == {"ZSTD"}
        assert "INT96" not in {column.physical_type for column in columns}
        assert {known.schema_arrow.field(name).type for name in ("sent_at", "started_at", "ended_at")} == {INSTANT}
        assert is_sorted(file)


def is_sorted(file: Path) -> bool:
    rows = pyarrow.dataset.dataset(file).to_table(["endpoint", "ended_at"]).to_pylist()
    keys = [(row["endpoint"] or "", row["ended_at"]) for row in rows]
    return keys == sorted(keys)

"""What an attempt wrote is read back by another reader than its writer: how many rows, which, and is any twice?"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from pgqueue_admin.history.storage.verify import read_back

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


def test_where_nothing_was_written_nothing_is_there(tmp_path: Path) -> None:
    assert read_back(tmp_path / "absent") == (0, 0, 0)


def test_a_file_that_is_none_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    with pytest.raises(pa.ArrowInvalid):
        read_back(tmp_path)

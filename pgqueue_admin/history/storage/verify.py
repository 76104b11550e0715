"""Which rows lie in the files of an attempt? Read back by another than the one that wrote them."""

from pathlib import Path
from typing import NamedTuple

from pyarrow.parquet import ParquetFile


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

"""Spark's time for receiving ready rows: Arrow batches from a file, without a database.

Spark ships this module to its executors by value, so it imports nothing of ours.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType


class Ready(DataSource):
    """A data source of two partitions, each with all batches of the option ``file``; its schema is passed in."""

    @classmethod
    def name(cls) -> str:
        return "ready_batches"

    def reader(self, schema: StructType) -> "Reader":
        return Reader(self.options["file"])


class Reader(DataSourceReader):
    def __init__(self, file: str):
        self.file = file

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(part) for part in range(2)]

    def read(self, partition: Any) -> Iterator[Any]:
        import pyarrow

        with pyarrow.memory_map(self.file) as mapped, pyarrow.ipc.open_file(mapped) as ready:
            for number in range(ready.num_record_batches):
                yield ready.get_batch(number)


def lay_out(batches: Iterable[Any], file: Path) -> None:
    import pyarrow

    with pyarrow.OSFile(str(file), "wb") as opened:
        into = None
        for batch in batches:
            into = into or pyarrow.ipc.new_file(opened, batch.schema)
            into.write_batch(batch)
        if into:
            into.close()

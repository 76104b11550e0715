"""What Spark takes to be handed rows that are ready: Arrow batches from a file, and no database.

Spark carries this module to its executors by value, so it imports nothing of ours.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType


class Ready(DataSource):
    """Each of two parts gives all batches of ``file``, an option. The schema is given to the reader."""

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

"""The data source of a batch: each partition is one SELECT, answered in Arrow batches. Runs on Spark's executors.

Spark pickles this module by value, so it imports none of ours.
"""

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

_BATCH_BYTES = str(4 * 1024 * 1024)


class QueuePartition(InputPartition):
    def __init__(self, select: str):
        self.select = select


class QueueHistory(DataSource):
    """Options: ``uri``, ``first`` (a statement), ``selects`` (a JSON list) and the schema given to the reader."""

    @classmethod
    def name(cls) -> str:
        return "queue_history"

    def reader(self, schema: StructType) -> "QueueReader":
        return QueueReader(dict(self.options))


class QueueReader(DataSourceReader):
    def __init__(self, options: dict[str, str]):
        self.uri, self.first, self.selects = options["uri"], options["first"], json.loads(options["selects"])

    def partitions(self) -> list[InputPartition]:
        return [QueuePartition(select) for select in self.selects]

    def read(self, partition: Any) -> Iterator[Any]:
        import adbc_driver_manager as adbc  # its dbapi imports pandas, for a third of a second
        import adbc_driver_postgresql
        import pyarrow

        with (
            adbc_driver_postgresql.connect(self.uri) as database,
            adbc.AdbcConnection(database) as connection,
            adbc.AdbcStatement(connection) as statement,
        ):
            statement.set_sql_query(self.first)
            statement.execute_update()
            statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": _BATCH_BYTES})
            statement.set_sql_query(partition.select)
            answer, _ = statement.execute_query()
            with pyarrow.RecordBatchReader.from_stream(answer) as batches:
                yield from batches

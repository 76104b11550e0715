"""What Spark reads: rows of a queue's database, as they are, or history, as it lies in files. Knows no Django."""

import json
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pgqueue_admin.history.spark.schemas import HISTORY, RAW


def of_queue(spark: SparkSession, uri: str, selects: list[str], schema: StructType = RAW) -> DataFrame:
    """Rows of ``schema``, a part for each of ``selects``."""
    reader = spark.read.format("queue_history").schema(schema)
    return reader.option("uri", uri).option("selects", json.dumps(selects)).load()


def of_files(spark: SparkSession, places: list[Path]) -> DataFrame:
    """Rows of schemas.HISTORY in folders or files."""
    return spark.read.schema(HISTORY).parquet(*map(str, places))

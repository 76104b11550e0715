"""Spark's inputs: rows of a queue's database, unchanged, or history files. Independent of Django."""

import json
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pgqueue_admin.dialects.postgresql import session_settings
from pgqueue_admin.dialects.postgresql.connect_options import said_by
from pgqueue_admin.history.spark.schemas import HISTORY, RAW


def of_queue(spark: SparkSession, uri: str, selects: list[str], schema: StructType = RAW) -> DataFrame:
    """Rows of ``schema``, one partition for each of ``selects``."""
    return spark.read.format("queue_history").schema(schema).options(**source_options(uri, selects)).load()


def source_options(uri: str, selects: list[str]) -> dict[str, str]:
    """Options of source.QueueHistory. A pooler drops the URI's settings, so each session sets them itself."""
    first = session_settings.setting(session_settings.started_with(said_by(uri)))
    return {"uri": uri, "first": first.as_string(None), "selects": json.dumps(selects)}


def of_files(spark: SparkSession, places: list[Path]) -> DataFrame:
    """Rows of schemas.HISTORY in folders or files."""
    return spark.read.schema(HISTORY).parquet(*map(str, places))

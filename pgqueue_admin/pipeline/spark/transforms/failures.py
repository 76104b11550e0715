"""Which failures, in which minute? One row per fingerprint and kind of message."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.pipeline.spark.transforms.fingerprints import folded
from pgqueue_admin.pipeline.spark.transforms.names import named

_NAMES = ["queue", "endpoint", "type", "exception"]
KEYS = ("at", "fingerprint", *_NAMES)


def failures(history: DataFrame) -> DataFrame:
    """KEYS, message (folded: the same for all of one fingerprint), messages, first_at, last_at."""
    failed = named(history, _NAMES).where(F.col("fingerprint").isNotNull())
    told = failed.withColumns({"at": F.date_trunc("minute", "ended_at"), "message": folded(F.col("exception_message"))})
    return told.groupBy(*KEYS).agg(
        F.coalesce(F.max("message"), F.lit("")).alias("message"),
        F.count("*").alias("messages"),
        F.min("ended_at").alias("first_at"),
        F.max("ended_at").alias("last_at"),
    )

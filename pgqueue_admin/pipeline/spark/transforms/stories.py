"""What became of it? A row a day and message that failed or was retried: how often, since when, and did it succeed?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.pipeline.spark.transforms.names import named
from pgqueue_admin.pipeline.spark.transforms.retries import was_retried

_NAMES = ["message_id", "queue", "endpoint", "type", "exception"]


def stories(history: DataFrame) -> DataFrame:
    """message_id, queue, endpoint, type, exception, failed, succeeded, first_at, last_failed_at, last_succeeded_at.

    Names are those of its last failure, or, where only its success is here, of that.
    """
    told = named(history, _NAMES).where(F.col("message_id") != "").withColumn("ok", F.col("result") == "success")
    about = told.where(~F.col("ok") | was_retried(F.col("headers")))
    return (
        about.groupBy("message_id", F.to_date("ended_at").alias("day"))
        .agg(
            *[F.max_by(name, F.struct(~F.col("ok"), F.col("ended_at"))).alias(name) for name in _NAMES[1:]],
            _times(~F.col("ok")).alias("failed"),
            _times(F.col("ok")).alias("succeeded"),
            F.min("ended_at").alias("first_at"),
            F.max(F.when(~F.col("ok"), F.col("ended_at"))).alias("last_failed_at"),
            F.max(F.when(F.col("ok"), F.col("ended_at"))).alias("last_succeeded_at"),
        )
        .drop("day")
    )


def _times(what: Column) -> Column:
    return F.count_if(what).cast("int")

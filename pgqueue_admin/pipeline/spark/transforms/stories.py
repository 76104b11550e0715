"""What became of it? A row a day, endpoint, and message that failed or was retried: how often, and did it succeed?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.pipeline.spark.transforms.names import named
from pgqueue_admin.pipeline.spark.transforms.once import once

_NAMES = ["message_id", "endpoint", "queue", "type", "exception"]


def stories(history: DataFrame) -> DataFrame:
    """message_id, queue, endpoint, type, exception, failed, succeeded, first_at, last_failed_at, last_succeeded_at.

    Names are those of its last failure, or, where only its success is here, of that. Of an event each of its endpoints
    has a row: all who receive it have one id.
    """
    told = named(history, _NAMES).withColumns(_about())
    about = told.where("message_id <> '' and (not ok or retried)")
    return about.groupBy("message_id", "endpoint", "day").agg(*_told()).drop("day")


@once
def _about() -> dict[str, Column]:
    return {"ok": F.col("result") == "success", "day": F.to_date("ended_at")}


@once
def _told() -> list[Column]:
    ok, at = F.col("ok"), F.col("ended_at")
    return [
        *[F.max_by(name, F.struct(~ok, at)).alias(name) for name in _NAMES[2:]],
        _times(~ok).alias("failed"),
        _times(ok).alias("succeeded"),
        F.min(at).alias("first_at"),
        F.max(F.when(~ok, at)).alias("last_failed_at"),
        F.max(F.when(ok, at)).alias("last_succeeded_at"),
    ]


def _times(what: Column) -> Column:
    return F.count_if(what).cast("int")

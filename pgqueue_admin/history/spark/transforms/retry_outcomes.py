"""Outcomes of messages that failed or were retried, per minute: how often, and whether they succeeded."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.history.spark.transforms.columns import named, once

_NAMES = ["message_id", "endpoint", "queue", "type", "exception"]


def retry_outcomes(history: DataFrame) -> DataFrame:
    """message_id, queue, endpoint, type, exception, failed, succeeded, first_at, last_failed_at, last_succeeded_at.

    Rows per minute make windows independent of batches; a queue or type has the rows of what failed there. The
    exception is that of the last failure. Receivers of one event share its id: each endpoint has a row.
    """
    told = named(history, _NAMES).withColumns(_about())
    about = told.where("message_id <> '' and (not ok or retried)")
    return about.groupBy(*_NAMES[:4], "minute").agg(*_told()).drop("minute")


@once
def _about() -> dict[str, Column]:
    return {"ok": F.col("result") == "success", "minute": F.date_trunc("minute", "ended_at")}


@once
def _told() -> list[Column]:
    ok, at = F.col("ok"), F.col("ended_at")
    return [
        F.max_by("exception", F.struct(~ok, at)).alias("exception"),
        _times(~ok).alias("failed"),
        _times(ok).alias("succeeded"),
        F.min(at).alias("first_at"),
        F.max(F.when(~ok, at)).alias("last_failed_at"),
        F.max(F.when(ok, at)).alias("last_succeeded_at"),
    ]


def _times(what: Column) -> Column:
    return F.count_if(what).cast("int")

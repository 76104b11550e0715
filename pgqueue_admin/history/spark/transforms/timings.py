"""How long did it take? Milliseconds from sent to done, of the handler, and from sent to its start."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.history.spark.transforms.cached_columns import once


def timed(messages: DataFrame) -> DataFrame:
    """Adds critical_ms, processing_ms, delivery_ms and skewed. A time before its beginning is counted, not kept.

    A message that was sent for later began to wait when it was due.
    """
    return messages.withColumns(_spans()).withColumns(_shown())


@once
def _spans() -> dict[str, Column]:
    waits_since = F.greatest(F.col("sent_at"), F.col("deliver_at"))
    return {
        "critical_ms": _between(waits_since, F.col("ended_at")),
        "processing_ms": _between(F.col("started_at"), F.col("ended_at")),
        "delivery_ms": _between(waits_since, F.col("started_at")),
    }


@once
def _shown() -> dict[str, Column]:
    skewed = F.coalesce(F.least(*_spans()) < 0, F.lit(False))
    return {"skewed": skewed, **{name: F.when(F.col(name) >= 0, F.col(name)) for name in _spans()}}


def _between(begin: Column, end: Column) -> Column:
    return F.floor((F.unix_micros(end) - F.unix_micros(begin)) / 1000)

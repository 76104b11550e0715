"""The columns of history kept of each message, in order."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.history.spark.schemas import HISTORY, REJECTED
from pgqueue_admin.history.spark.transforms.columns import delivered_once, once, timed
from pgqueue_admin.history.spark.transforms.fingerprints import fingerprinted

_SHOWN = 4096  # characters of a rejected message's headers


def history(messages: DataFrame, source: str, batch: int = 0, own_code: tuple[str, ...] = ()) -> DataFrame:
    """Rows of schemas.HISTORY for every message that may be kept. ``own_code``: PGQUEUE_OWN_CODE."""
    kept = messages.where("blocking_reason is null")
    known = {"source": F.lit(source), "batch": _one_of(batch), "day": F.to_date("ended_at")}
    return fingerprinted(delivered_once(timed(kept)), own_code).withColumns(known).select(*_columns())


@once
def _columns() -> list[Column]:
    return [F.col(field.name).cast(field.dataType) for field in HISTORY]


def _one_of(number: int) -> Column:
    """The batch number, looked up in an array. As a literal it would change the generated code with each batch, and
    Java would compile it again: slow for its first seconds."""
    return F.get(F.array(F.lit(number)), (F.col("seq") - F.col("seq")).cast("int"))


def ordered(history: DataFrame) -> DataFrame:
    """Sort as files are written, one per partition and day. The day comes first, or Spark sorts again by day alone."""
    return history.sortWithinPartitions("day", "endpoint", "ended_at")


def rejected(messages: DataFrame, source: str) -> DataFrame:
    """Rows of schemas.REJECTED for every other message: the reason, and enough to find it again."""
    turned_away = messages.where(F.col("blocking_reason").isNotNull())
    named = turned_away.withColumns({"source": F.lit(source), "reason": F.col("blocking_reason")})
    return named.withColumn("headers", F.substring("headers", 1, _SHOWN)).select(*REJECTED.fieldNames())


def reasons(rejected: DataFrame) -> dict[str, int]:
    """Number of rows by reason."""
    return {row.reason: row["count"] for row in rejected.groupBy("reason").count().collect()}

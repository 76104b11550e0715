"""What is kept of each message: the columns of history, in order."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.pipeline.schemas import HISTORY
from pgqueue_admin.pipeline.transforms.fingerprints import fingerprinted
from pgqueue_admin.pipeline.transforms.timings import timed


def history(messages: DataFrame, source: str) -> DataFrame:
    """Rows of schemas.HISTORY of all that may be kept."""
    kept = messages.where(F.col("why_not").isNull())
    whole = fingerprinted(timed(kept)).withColumns({"source": F.lit(source), "day": F.to_date("ended_at")})
    return whole.select(*[F.col(field.name).cast(field.dataType) for field in HISTORY])


def rejected(messages: DataFrame) -> DataFrame:
    """reason, rows."""
    return messages.where(F.col("why_not").isNotNull()).groupBy(F.col("why_not").alias("reason")).count()

"""Was it tried before? Its headers say so; what it waited then is nothing that says how fast messages are delivered."""

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_RETRIED = ("NServiceBus.Retries", "ServiceControl.Retry.UniqueMessageId", "Pgqueue.RetriedFrom")
_SHARED = "Retr"  # by all of these


def was_retried(headers: Column) -> Column:
    """Looking for what the names share first is many times as fast as the expression, which few rows come to."""
    names = "|".join(map(re.escape, _RETRIED))
    return F.coalesce(headers.contains(_SHARED) & headers.rlike(rf'"({names})"\s*:'), F.lit(False))


def delivered_once(messages: DataFrame) -> DataFrame:
    """Empties delivery_ms of what was retried: since it was sent it lay in an archive, or waited for its next try."""
    return messages.withColumn("delivery_ms", F.when(~was_retried(F.col("headers")), F.col("delivery_ms")))

"""Columns that several steps use, each made once: names that figures are counted by, earlier attempts, timings."""

import re
from functools import cache as once

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.history.rollups.name_limits import BYTES, CHARACTERS

# Columns are made once: each is a dozen questions to Java, and a batch has hundreds of them, however small it is.
# They say what they are made of and not of which frame, so all frames can share them; a process has one Java at most.
__all__ = ["once"]


# Names that figures are counted by: never null, and no longer than an index of the database can hold.
def named(history: DataFrame, names: list[str]) -> DataFrame:
    """Columns of ``names``, exception_type as ``exception``; empty where nothing is known."""
    renamed = history.withColumnsRenamed({"exception_type": "exception"}).fillna("", names)
    return renamed.withColumns({name: _cut(name) for name in names})


@once
def _cut(name: str) -> Column:
    """As rollups.name_limits has it."""
    return F.when(F.octet_length(name) > BYTES, F.substring(name, 1, CHARACTERS)).otherwise(F.col(name))


# Was it tried before? Its headers say so; what it waited then is nothing that says how fast messages are delivered.
RETRY_HEADERS = ("NServiceBus.Retries", "ServiceControl.Retry.UniqueMessageId", "Pgqueue.RetriedFrom")
_SHARED = "Retr"  # by all of these


def delivered_once(messages: DataFrame) -> DataFrame:
    """Empties delivery_ms of what was retried: since it was sent it lay in an archive, or waited for its next try."""
    return messages.withColumn("delivery_ms", _of_one_delivery())


@once
def _of_one_delivery() -> Column:
    return F.when(~F.col("retried"), F.col("delivery_ms"))


def told_of_old(history: DataFrame) -> DataFrame:
    """Files of version 2 have no ``retried``: there their headers are asked."""
    return history.withColumn("retried", F.coalesce("retried", _has_name(F.col("headers"))))


def _has_name(headers: Column) -> Column:
    """Looking for what the names share first is many times as fast as the expression, which few rows come to."""
    return headers.contains(_SHARED) & headers.rlike(rf'"({"|".join(map(re.escape, RETRY_HEADERS))})"\s*:')


# How long did it take? Milliseconds from sent to done, of the handler, and from sent to its start.
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

"""Columns that several transforms use, each built once: grouping names, earlier attempts, timings."""

import re
from functools import cache as once

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.history.rollups.name_limits import BYTES, CHARACTERS

# Columns are built once: each takes a dozen calls to Java, and every batch has hundreds. They refer to names, not to a
# frame, so all frames can share them; a process has one Java at most.
__all__ = ["once"]


# Grouping names: never null, and no longer than an index of the database can hold.
def named(history: DataFrame, names: list[str]) -> DataFrame:
    """Columns of ``names``, exception_type as ``exception``; empty if unknown."""
    renamed = history.withColumnsRenamed({"exception_type": "exception"}).fillna("", names)
    return renamed.withColumns({name: _cut(name) for name in names})


@once
def _cut(name: str) -> Column:
    """As in rollups.name_limits."""
    return F.when(F.octet_length(name) > BYTES, F.substring(name, 1, CHARACTERS)).otherwise(F.col(name))


# Earlier attempts, by the headers: a retried message's wait does not tell how fast messages are delivered.
RETRY_HEADERS = ("NServiceBus.Retries", "ServiceControl.Retry.UniqueMessageId", "Pgqueue.RetriedFrom")
_SHARED = "Retr"  # common to all of these


def delivered_once(messages: DataFrame) -> DataFrame:
    """Clear delivery_ms of retried messages: after sending they were in an archive, or waited for the next try."""
    return messages.withColumn("delivery_ms", _of_one_delivery())


@once
def _of_one_delivery() -> Column:
    return F.when(~F.col("retried"), F.col("delivery_ms"))


def told_of_old(history: DataFrame) -> DataFrame:
    """Files of version 2 have no ``retried``: it is read from their headers."""
    return history.withColumn("retried", F.coalesce("retried", _has_name(F.col("headers"))))


def _has_name(headers: Column) -> Column:
    """A plain search for the common part is many times faster than the expression, which few rows then need."""
    return headers.contains(_SHARED) & headers.rlike(rf'"({"|".join(map(re.escape, RETRY_HEADERS))})"\s*:')


# Durations in milliseconds: from sending to the end, of the handler, and from sending to its start.
def timed(messages: DataFrame) -> DataFrame:
    """Add critical_ms, processing_ms, delivery_ms and skewed. A negative duration is counted as skewed, not kept.

    A delayed message begins to wait when it is due.
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

"""Failures per minute: one row per fingerprint and kind of message."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pgqueue_admin.history.spark.transforms.columns import named, once
from pgqueue_admin.history.spark.transforms.fingerprints import folded

_NAMES = ["queue", "endpoint", "type", "exception"]
KEYS = ("at", "fingerprint", *_NAMES)


def failures(history: DataFrame) -> DataFrame:
    """KEYS, message (folded: the same for all of one fingerprint), messages, first_at, last_at."""
    failed = named(history, _NAMES).where("fingerprint is not null")
    return failed.withColumns(_told()).groupBy(*KEYS).agg(*_counted())


@once
def _told() -> dict[str, Column]:
    return {"at": F.date_trunc("minute", "ended_at"), "message": folded()}


@once
def _counted() -> list[Column]:
    return [
        F.coalesce(F.max("message"), F.lit("")).alias("message"),
        F.count("*").alias("messages"),
        F.min("ended_at").alias("first_at"),
        F.max("ended_at").alias("last_at"),
    ]

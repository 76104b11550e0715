"""Counts by minute, hour and day, and histogram buckets of timings."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from pgqueue_admin.history.rollups.histogram import LOG_GAMMA, NOTHING
from pgqueue_admin.history.spark.transforms.columns import named, once

GRAINS = ("minute", "hour", "day")
MEASURES = ("critical", "processing", "delivery")
_NAMES = ["queue", "endpoint", "type", "result", "exception"]
KEYS = ("grain", "at", *_NAMES)


def rollups(history: DataFrame) -> DataFrame:
    """One row per grain, instant and kind of message; each measure as its buckets and how often each occurred."""
    each = _minutes(history).withColumn("grain", _of_each_grain()).withColumn("at", _begin())
    return each.groupBy(*KEYS).agg(*_summed()).mapInArrow(_counted, SCHEMA)


def _minutes(history: DataFrame) -> DataFrame:
    """Reads each row once: hours and days are built from minutes."""
    return named(history, _NAMES).withColumn("at", _minute()).groupBy("at", *_NAMES).agg(*_of_a_minute())


@once
def _minute() -> Column:
    return F.date_trunc("minute", "ended_at")


@once
def _of_a_minute() -> list[Column]:
    lists = [F.collect_list(_bucket(f"{measure}_ms")).alias(measure) for measure in MEASURES]
    return [F.count("*").alias("messages"), F.count_if("skewed").alias("skewed"), *lists]


@once
def _of_each_grain() -> Column:
    return F.explode(F.array(*map(F.lit, GRAINS)))


@once
def _begin() -> Column:
    return F.expr("date_trunc(grain, at)")


@once
def _summed() -> list[Column]:
    sums = [F.sum(name).alias(name) for name in ("messages", "skewed")]
    return [*sums, *(F.flatten(F.collect_list(measure)).alias(measure) for measure in MEASURES)]


def _bucket(column: str) -> Column:
    value = F.col(column).cast("double")
    return F.when(value <= 0, NOTHING).when(value > 0, F.ceil(F.log(value) / LOG_GAMMA)).cast("int")


def _counted(batches: Iterator[Any]) -> Iterator[Any]:
    """Turn lists of buckets into buckets and counts."""
    import pyarrow as pa

    for batch in batches:
        columns = [batch.column(name) for name in (*KEYS, "messages", "skewed")]
        for measure in MEASURES:
            columns += run_lengths(batch.column(measure))
        yield pa.RecordBatch.from_arrays(columns, names=SCHEMA.fieldNames())


def run_lengths(lists: Any) -> tuple[Any, Any]:
    """For a list column: the lists sorted without repeats, and how often each number occurred."""
    import numpy as np
    import pyarrow as pa

    offsets = np.asarray(lists.offsets)
    rows = np.repeat(np.arange(len(lists)), np.diff(offsets)).astype(np.int64)
    numbers = np.asarray(lists.flatten()).astype(np.int64) - NOTHING  # not negative: a pair fits one integer
    pairs, counts = np.unique((rows << 32) | numbers, return_counts=True)
    ends = pa.array(np.searchsorted(pairs >> 32, np.arange(len(lists) + 1)).astype(np.int32))
    found = pa.array(((pairs & 0xFFFFFFFF) + NOTHING).astype(np.int32))
    return pa.ListArray.from_arrays(ends, found), pa.ListArray.from_arrays(ends, pa.array(counts.astype(np.int64)))


SCHEMA = StructType(
    [
        StructField("grain", StringType()),
        StructField("at", TimestampType()),
        *[StructField(name, StringType()) for name in _NAMES],
        StructField("messages", LongType()),
        StructField("skewed", LongType()),
        *[
            field
            for measure in MEASURES
            for field in (
                StructField(f"{measure}_buckets", ArrayType(IntegerType())),
                StructField(f"{measure}_counts", ArrayType(LongType())),
            )
        ],
    ]
)

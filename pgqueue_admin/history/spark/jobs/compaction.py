"""Merges the small files of a day. Readers by the manifest see the same rows throughout."""

import os
from decimal import Decimal
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pgqueue_admin.history.runtime.cancellation import cancelled_with
from pgqueue_admin.history.spark.data_frames import of_files
from pgqueue_admin.history.spark.jobs.batch import PlanMismatch
from pgqueue_admin.history.spark.transforms.history import ordered
from pgqueue_admin.history.storage import compactions
from pgqueue_admin.history.storage.compactions import DueCompaction
from pgqueue_admin.history.storage.layout import gone_if_it_fails, of_compaction
from pgqueue_admin.history.storage.manifest import of_days
from pgqueue_admin.models import DataFile, HistoryCompaction


def run(spark: SparkSession, due: DueCompaction, folder: Path) -> None:
    """Read, sort, write, read back, compare, replace in the manifest. Raises PlanMismatch, Superseded, and any Spark
    error."""
    compaction = compactions.begin(due)
    place = of_compaction(folder, due.source.pk, due.day, compaction.token)
    try:
        with cancelled_with(spark, lambda: compactions.is_running(compaction.token)):
            _compact(spark, compaction, due, folder, place)
    except BaseException as error:
        compactions.failed(compaction, f"{type(error).__name__}: {error}")
        raise


def _compact(spark: SparkSession, compaction: HistoryCompaction, due: DueCompaction, folder: Path, place: Path) -> None:
    with gone_if_it_fails(place):
        made = _written(spark, compaction, due, folder, place)
    for file in due.files:
        os.utime(folder / file.path)  # starts the sweep's hour: readers of the old manifest still use it
    compactions.done(compaction, due, made)  # may raise although it committed: its answer can be lost


def _written(
    spark: SparkSession, compaction: HistoryCompaction, due: DueCompaction, folder: Path, place: Path
) -> DataFile:
    before = of_files(spark, [folder / file.path for file in due.files]).withColumn("day", F.lit(due.day))
    ordered(before.repartition(1)).write.partitionBy("day").parquet(str(place))
    (made,) = of_days(due.source, folder, place)
    if made.rows != compaction.rows or _sum(before) != _sum(of_files(spark, [place])):
        raise PlanMismatch(f"{compaction.rows} rows of {due.day} became {made.rows}, or others.")
    return made


def _sum(history: DataFrame) -> Decimal:
    """Order-independent checksum of rows."""
    each = F.xxhash64(*[name for name in history.columns if name != "day"])
    found: Decimal = history.agg(F.sum(each.cast("decimal(38,0)"))).collect()[0][0]
    return found

"""Small files of a day become one. Nobody who reads by the manifest sees more of it than that files are fewer."""

import os
from decimal import Decimal
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pgqueue_admin.history.runtime.cancellation import cancelled_with
from pgqueue_admin.history.spark.jobs.batch import PlanMismatch
from pgqueue_admin.history.spark.readers import of_files
from pgqueue_admin.history.spark.transforms.history import ordered
from pgqueue_admin.history.storage import compactions
from pgqueue_admin.history.storage.compactions import DueCompaction
from pgqueue_admin.history.storage.layout import gone_if_it_fails, of_compaction
from pgqueue_admin.history.storage.manifest import of_days
from pgqueue_admin.models import DataFile, HistoryCompaction


def run(spark: SparkSession, due: DueCompaction, folder: Path) -> None:
    """Read, sort, write, read back, compare, change the manifest. Raises PlanMismatch, Superseded, and Spark's own."""
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
        os.utime(folder / file.path)  # the sweep's hour begins: who has just asked the manifest still reads it
    compactions.done(compaction, due, made)  # it may be done though it raises: its answer can be lost


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
    """The same for the same rows, in whatever order."""
    each = F.xxhash64(*[name for name in history.columns if name != "day"])
    found: Decimal = history.agg(F.sum(each.cast("decimal(38,0)"))).collect()[0][0]
    return found

"""Recomputes a day's figures from its files: the source rows may be gone."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from pgqueue_admin.history.ledger import Superseded
from pgqueue_admin.history.plan import planning, recompute_requests
from pgqueue_admin.history.runtime.cancellation import cancelled_with
from pgqueue_admin.history.spark.data_frames import of_files
from pgqueue_admin.history.spark.jobs.aggregation import figures
from pgqueue_admin.history.spark.transforms.columns import told_of_old
from pgqueue_admin.models import DataFile, RecomputeRequest


def run(spark: SparkSession, day: RecomputeRequest, folder: Path) -> None:
    """Raises Superseded if the request was withdrawn, FilesMoved, FilesLost, and Spark's errors."""
    files = recompute_requests.files(day)
    try:
        with cancelled_with(spark, lambda: recompute_requests.is_wanted(day)):
            made = [
                each
                for some in _batches(files)
                for each in figures(told_of_old(of_files(spark, [folder / file.path for file in some])))
            ]
    except Exception as error:
        if not recompute_requests.is_wanted(day):
            raise Superseded(f"{day.day} is not to be recomputed any more.") from error
        raise
    recompute_requests.recomputed(day, files, made)


def _batches(files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    """Files in groups of at most a batch's rows, at least one file each: a day may exceed Java's memory."""
    some: list[DataFile] = []
    for file in files:
        if some and sum(each.rows for each in some) + file.rows > planning.MOST:
            yield some
            some = []
        some.append(file)
    if some:
        yield some

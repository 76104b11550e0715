"""Figures of a day anew, from its files: what it was read from may long be gone."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from pgqueue_admin.pipeline.ledger import Superseded
from pgqueue_admin.pipeline.plan import days, planning
from pgqueue_admin.pipeline.runtime.cancelling import cancelled_with
from pgqueue_admin.pipeline.spark.counting import figures
from pgqueue_admin.pipeline.spark.reading import of_files
from pgqueue_admin.pipeline.spark.transforms.retries import told_of_old
from pgqueue_admin.records.models import HistoryDay, HistoryFile


def run(spark: SparkSession, day: HistoryDay, folder: Path) -> None:
    """Raises Superseded where nobody asks for it any more, days.Moved, history.FilesLost, and Spark's own."""
    files = days.files(day)
    try:
        with cancelled_with(spark, lambda: days.is_wanted(day)):
            made = [
                each
                for some in _batches(files)
                for each in figures(told_of_old(of_files(spark, [folder / file.path for file in some])))
            ]
    except Exception as error:
        if not days.is_wanted(day):
            raise Superseded(f"{day.day} is not to be recomputed any more.") from error
        raise
    days.recomputed(day, files, made)


def _batches(files: Sequence[HistoryFile]) -> Iterator[list[HistoryFile]]:
    """As many rows at once as in a batch, a file at least: a day may hold more than Java has room for."""
    some: list[HistoryFile] = []
    for file in files:
        if some and sum(each.rows for each in some) + file.rows > planning.MOST:
            yield some
            some = []
        some.append(file)
    if some:
        yield some

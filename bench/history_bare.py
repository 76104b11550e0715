"""Spark's own time for the steps that every batch needs: how much of a batch's time is ours?"""

import shutil
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.history_archive import WARM, Archive, copied, seconds, thrown_away
from bench.table import Row, row
from pgqueue_admin.history.sources.read_sessions import for_looking

FEW = ("seq", "queue", "result", "ended_at", "headers", "body")
_WORDS = ("MessageId", "ConversationId", "EnclosedMessageTypes", "TimeSent", "ProcessingStarted", "ProcessingEnded")
_HEADERS = "struct<{}>".format(", ".join(f"`NServiceBus.{word}`: string" for word in _WORDS))


def bare(archive: Archive, rows: int, rounds: int, folder: Path) -> list[Row]:
    """Measure each way over ``rows`` unread messages, beside a COPY of its own statements."""
    archive.fill(rows)
    whole, place = archive.selects(rows), folder / "bare"
    few = [f"select {', '.join(FEW)} from ({select}) few" for select in whole]
    ready = handed(archive, whole[0], folder / "ready.arrow")
    ways: dict[str, tuple[list[str], Callable[[], None]]] = {
        "six columns read in Spark, against their COPY": (few, partial(archive.read, few, FEW)),
        "ready batches handed to Spark, no database, against the COPY": (whole, partial(thrown_away, ready)),
        "Spark alone: read, JSON, sort, Parquet, against the COPY": (whole, partial(write, archive, whole, place)),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(WARM + rounds):
        for name, (selects, work) in ways.items():
            taken[name].append((seconds(partial(copied, archive.dsn, selects)), seconds(work)))
    archive.driver.run_once()
    medians = {name: map(statistics.median, zip(*found[WARM:], strict=True)) for name, found in taken.items()}
    return [row(name, rows / spent, "/s", floor=rows / copy, target=0) for name, (copy, spent) in medians.items()]


def handed(archive: Archive, select: str, file: Path) -> Any:
    """As many rows, as two copies of one part: the cost of reading if the driver cost nothing."""
    from pyspark import cloudpickle

    from bench import history_handed
    from pgqueue_admin.history.spark.data_frames import source_options
    from pgqueue_admin.history.spark.queue_reader import QueuePartition, QueueReader
    from pgqueue_admin.history.spark.schemas import RAW

    reader = QueueReader(source_options(for_looking(archive.dsn), []))
    history_handed.lay_out(reader.read(QueuePartition(select)), file)
    cloudpickle.register_pickle_by_value(history_handed)
    spark = archive.driver._session()
    spark.dataSource.register(history_handed.Ready)
    return spark.read.format("ready_batches").schema(RAW).option("file", str(file)).load()


def write(archive: Archive, selects: list[str], place: Path) -> None:
    from pyspark.sql import functions as F

    shutil.rmtree(place, ignore_errors=True)
    told = archive.raw(selects).withColumns({"told": F.from_json("headers", _HEADERS), "day": F.to_date("ended_at")})
    ordered = told.sortWithinPartitions("day", "endpoint", "ended_at")
    ordered.write.option("parquet.compression.codec.zstd.level", "1").partitionBy("day").parquet(str(place))

"""What Spark takes by itself for the steps that a batch cannot do without: how much of a batch's time is ours?"""

import json
import shutil
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.history import WARM, Archive, copied, seconds
from bench.table import Row, row

FEW = ("seq", "queue", "result", "ended_at", "headers", "body")
_WORDS = ("MessageId", "ConversationId", "EnclosedMessageTypes", "TimeSent", "ProcessingStarted", "ProcessingEnded")
_HEADERS = "struct<{}>".format(", ".join(f"`NServiceBus.{word}`: string" for word in _WORDS))


def bare(archive: Archive, rows: int, rounds: int, folder: Path) -> list[Row]:
    """Of ``rows`` messages that no batch has read, each beside a COPY of its own statements."""
    archive.fill(rows)
    whole, place = archive.selects(rows), folder / "bare"
    few = [f"select {', '.join(FEW)} from ({select}) few" for select in whole]
    ways: dict[str, tuple[list[str], Callable[[], None]]] = {
        "six columns read in Spark, against their COPY": (few, partial(throw_away, archive, few)),
        "Spark alone: read, JSON, sort, Parquet, against the COPY": (whole, partial(write, archive, whole, place)),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(WARM + rounds):
        for name, (selects, work) in ways.items():
            taken[name].append((seconds(partial(copied, archive.dsn, selects)), seconds(work)))
    archive.driver.turn()
    medians = {name: map(statistics.median, zip(*found[WARM:], strict=True)) for name, found in taken.items()}
    return [row(name, rows / spent, "/s", floor=rows / copy, target=0) for name, (copy, spent) in medians.items()]


def read(archive: Archive, selects: list[str], columns: tuple[str, ...] = ()) -> Any:
    from pyspark.sql.types import StructType

    from pgqueue_admin.pipeline.sources.looking import for_looking
    from pgqueue_admin.pipeline.spark.schemas import RAW

    spark = archive.driver._session()
    schema = StructType([RAW[name] for name in columns or RAW.fieldNames()])
    reader = spark.read.format("queue_history").schema(schema).option("uri", for_looking(archive.dsn))
    return reader.option("selects", json.dumps(selects)).load()


def throw_away(archive: Archive, selects: list[str]) -> None:
    read(archive, selects, FEW).write.format("noop").mode("overwrite").save()


def write(archive: Archive, selects: list[str], place: Path) -> None:
    from pyspark.sql import functions as F

    shutil.rmtree(place, ignore_errors=True)
    told = read(archive, selects).withColumns({"told": F.from_json("headers", _HEADERS), "day": F.to_date("ended_at")})
    ordered = told.sortWithinPartitions("day", "endpoint", "ended_at")
    ordered.write.option("parquet.compression.codec.zstd.level", "1").partitionBy("day").parquet(str(place))

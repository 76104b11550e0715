"""One batch, from the queues' database to files and figures. What happens before the last step counts for nothing."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pgqueue_admin.pipeline import ledger
from pgqueue_admin.pipeline.places import of_attempt
from pgqueue_admin.pipeline.schemas import HISTORY, RAW
from pgqueue_admin.pipeline.tables import SNAPSHOTS
from pgqueue_admin.pipeline.transforms.history import history, rejected
from pgqueue_admin.pipeline.transforms.parsed import parsed
from pgqueue_admin.pipeline.transforms.rollups import rollups
from pgqueue_admin.records.models import HistoryBatch, HistoryFile, Rollup


class NotAsPlanned(Exception):
    """What was read or written is not what was planned: nothing of it counts, and it is tried again."""


def run(
    spark: SparkSession, batch: HistoryBatch, uri: str, selects: list[str], folder: Path, code_version: str
) -> None:
    """Read, parse, write, read back, compare, commit. Raises NotAsPlanned, Superseded, and what Spark raises."""
    token = ledger.begin(batch, code_version)
    try:
        _attempt(spark, batch, token, _read(spark, uri, selects), folder)
    except ledger.Superseded:
        raise
    except Exception as error:
        ledger.failed(batch, token, f"{type(error).__name__}: {error}")
        raise


def _read(spark: SparkSession, uri: str, selects: list[str]) -> DataFrame:
    reader = spark.read.format("queue_history").schema(RAW)
    return reader.option("uri", uri).option("selects", json.dumps(selects)).load()


def _attempt(spark: SparkSession, batch: HistoryBatch, token: UUID, raw: DataFrame, folder: Path) -> None:
    place = of_attempt(folder, batch.pk, token)
    messages = parsed(raw).cache()
    try:
        turned_away = {row.reason: row["count"] for row in rejected(messages).collect()}
        rows = history(messages, batch.source.table).repartition(1).sortWithinPartitions("endpoint", "ended_at")
        rows.write.partitionBy("day").parquet(str(place))
        written = _read_back(spark, place)
        _compare(batch, written, turned_away)
        made = [Rollup(batch=batch, **row) for row in rollups(written).toArrow().to_pylist()]
        files = list(_manifest(batch, folder, place))
        ledger.done(batch, token, sum(each.rows for each in files), turned_away, files, made)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    finally:
        messages.unpersist()


def _read_back(spark: SparkSession, place: Path) -> DataFrame:
    return spark.read.schema(HISTORY).parquet(str(place))


def _compare(batch: HistoryBatch, written: DataFrame, turned_away: dict[str, int]) -> None:
    found = written.agg(F.count("*").alias("rows"), F.count_distinct("seq").alias("distinct")).collect()[0]
    whole = found["rows"] + sum(turned_away.values())
    # an audit queue is somebody's: its owner may have taken rows since
    complete = whole == batch.rows if batch.source.way == SNAPSHOTS else whole <= batch.rows
    if not complete or found["distinct"] != found["rows"]:
        raise NotAsPlanned(f"{batch.rows} rows were planned, {whole} were read, {found['distinct']} differ.")


def _manifest(batch: HistoryBatch, folder: Path, place: Path) -> Iterator[HistoryFile]:
    for path in sorted(place.glob("day=*/*.parquet")):
        facts: dict[str, Any] = {"rows": pyarrow.parquet.read_metadata(path).num_rows, "bytes": path.stat().st_size}
        day = path.parent.name.removeprefix("day=")
        yield HistoryFile(batch=batch, path=str(path.relative_to(folder)), day=day, **facts)

"""One batch, from the queues' database to files and figures. Only the last step makes it count."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from django.conf import settings
from pyspark.sql import DataFrame, SparkSession

from pgqueue_admin.history import ledger
from pgqueue_admin.history.rollups.copy_format import BatchRollups
from pgqueue_admin.history.runtime import java
from pgqueue_admin.history.runtime.cancellation import cancelled_with
from pgqueue_admin.history.sources.read_sessions import ReadOverdue
from pgqueue_admin.history.sources.size_limits import body_most
from pgqueue_admin.history.sources.tables import SNAPSHOTS
from pgqueue_admin.history.spark.data_frames import of_files, of_queue
from pgqueue_admin.history.spark.jobs.aggregation import figures
from pgqueue_admin.history.spark.schemas import REJECTED as REJECTED_ROWS
from pgqueue_admin.history.spark.transforms.history import history, ordered, reasons, rejected
from pgqueue_admin.history.spark.transforms.parse_headers import parsed
from pgqueue_admin.history.storage.layout import REJECTED, VERSION, gone_if_it_fails, of_attempt
from pgqueue_admin.history.storage.manifest import ReadBack, manifest, read_back
from pgqueue_admin.models import DataFile, HistoryBatch

log = logging.getLogger(__name__)
Step = HistoryBatch.Step
_ZSTD = {"parquet.compression.codec.zstd.level": "1"}  # these files are compacted soon, at a higher level

BlockingReason = Callable[[int], str]  # given the rows read: why they may not be the batch, checked at that time


class PlanMismatch(Exception):
    """Rows read or written differ from the plan: none of them counts, and the present rows are planned anew."""


def run(
    spark: SparkSession,
    batch: HistoryBatch,
    uri: str,
    selects: list[str],
    folder: Path,
    code_version: str,
    blocking_reason: BlockingReason,
) -> None:
    """Read, parse, write, read back, compare, commit. Raises PlanMismatch, Superseded, and what Spark raises."""
    token, overdue = ledger.begin(batch, code_version), ReadOverdue(uri)
    try:
        with cancelled_with(spark, lambda: ledger.is_mine(batch, token) and not overdue.ended()):
            _attempt(spark, batch, token, of_queue(spark, uri, selects), folder, blocking_reason)
    except ledger.Superseded:
        raise
    except Exception as error:
        if not ledger.is_mine(batch, token):
            raise ledger.Superseded(f"Batch {batch.pk} was cancelled, or begun by another.") from error
        if isinstance(error, PlanMismatch):
            ledger.not_as_planned(batch, token, str(error))
            raise
        ledger.failed(batch, token, java.said(error))
        log.warning("History: batch %s failed: %s", batch.pk, error)  # in full; History shows a line and links here
        raise


def _attempt(
    spark: SparkSession, batch: HistoryBatch, token: UUID, raw: DataFrame, folder: Path, blocking_reason: BlockingReason
) -> None:
    places = [of_attempt(folder, batch.pk, token, dataset) for dataset in (VERSION, REJECTED)]
    with gone_if_it_fails(*places):
        turned_away, made = _written(spark, batch, token, parsed(raw, _body_most()), places)
        files = list(manifest(batch, folder, *places))
        kept = sum(each.rows for each in files if each.dataset == DataFile.Dataset.HISTORY)
        if why := blocking_reason(kept + sum(turned_away.values())):
            raise PlanMismatch(why)
    ledger.done(batch, token, kept, turned_away, files, made)  # may raise although it committed: its answer can be lost


def _body_most() -> int:
    return body_most(settings.PGQUEUE["HISTORY_BODIES"])


def _written(
    spark: SparkSession, batch: HistoryBatch, token: UUID, messages: DataFrame, places: list[Path]
) -> tuple[dict[str, int], list[BatchRollups]]:
    """Write files to ``places`` and compare them with the plan. Returns rejected rows by reason, and the figures."""
    kept = ordered(history(messages, batch.source.table, batch.pk, settings.PGQUEUE["OWN_CODE"]))
    kept.write.options(**_ZSTD).partitionBy("day").parquet(str(places[0]))
    ledger.reached(batch, token, Step.WRITTEN)
    written = of_files(spark, [places[0]])
    turned_away = _compare(batch, read_back(places[0]), rejected(messages, batch.source.table), places[1])
    ledger.reached(batch, token, Step.COMPARED)
    made = figures(written)
    ledger.reached(batch, token, Step.COUNTED)
    return turned_away, made


def _compare(batch: HistoryBatch, found: ReadBack, rejected: DataFrame, place: Path) -> dict[str, int]:
    """Number of rejected rows by reason. Raises PlanMismatch."""
    # missing rows are read from the queue once more; most batches miss none
    turned_away, sum_away = _write_rejected(rejected, place) if found.rows < batch.rows else ({}, 0)
    whole = found.rows + sum(turned_away.values())
    # an audit queue's owner may have deleted rows since
    complete = whole == batch.rows if batch.source.cursor_kind == SNAPSHOTS else whole <= batch.rows
    if not complete or found.distinct != found.rows:
        raise PlanMismatch(f"{batch.rows} rows were planned, {whole} were read, {found.distinct} differ.")
    if whole == batch.rows and found.sum + sum_away != int(batch.seq_checksum):
        raise PlanMismatch(f"{whole} rows were planned and read, and not all with the numbers that were planned.")
    return turned_away


def _write_rejected(rejected: DataFrame, place: Path) -> tuple[dict[str, int], int]:
    """Numbers of rejected rows by reason, and the sum of their seq; without any, no file."""
    rejected.coalesce(1).write.parquet(str(place))
    written = rejected.sparkSession.read.schema(REJECTED_ROWS).parquet(str(place))
    if counted := reasons(written):
        return counted, read_back(place).sum
    shutil.rmtree(place)
    return {}, 0

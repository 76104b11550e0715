"""Runs batches one after the other. Spark starts with the first batch and stays."""

import logging
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import ledger
from pgqueue_admin.history.anomalies import ttbr_risk
from pgqueue_admin.history.plan import planning, recompute_requests, safe_upper_bound
from pgqueue_admin.history.runtime import java, jvm_watchdog
from pgqueue_admin.history.sources import read_sessions, retry_backoff
from pgqueue_admin.history.sources.partition_queries import selects
from pgqueue_admin.history.sources.read_sessions import for_looking
from pgqueue_admin.history.sources.tables import given_out, is_held, sources
from pgqueue_admin.history.storage import compactions, depth_files, event_files, layout
from pgqueue_admin.history.storage.layout import folder
from pgqueue_admin.models import HistoryBatch, HistorySource, database_clock
from pgqueue_admin.models.queue_database import queue_database

log = logging.getLogger(__name__)
MEASURE_EVERY = 300.0
MUCH = 50_000  # messages: this many are read before the regular time
_HUNG_UP = 10.0  # seconds to wait for an unresponsive Java process to end
_SMALL = 20_000  # rows: a smaller batch is no faster in two parts


class BatchLoop:
    """Reads batches until ``ending`` is true. ``is_busy``: do others need this machine? Called before each batch.
    ``has_read``: called after each."""

    def __init__(
        self,
        code_version: str = "",
        most: int = planning.MOST,
        many: int = compactions.MANY,
        spark: Any = None,
        is_busy: Callable[[], bool] = lambda: False,
        has_read: Callable[[], None] = lambda: None,
    ):
        self._is_busy, self._has_read = is_busy, has_read
        self._code_version, self._most, self._many, self._spark = code_version, most, many, spark
        self._measure_at = 0.0
        self._given_out: int | None = None  # numbers given out when the last turn began
        self._not_ready: Exception | None = None  # in this turn: an unreachable cluster is waited for only once
        self._watch: jvm_watchdog.JvmWatchdog | None = None

    def run_once(self, ending: Callable[[], bool] = lambda: False) -> int:
        """Read all that existed at the start, source by source; return how many batches were done.

        An error at one source stops neither the others nor the later steps; the first one is raised at the end.
        Raises JavaLost, too. Does nothing while the folder is not the manifest's.
        """
        java.check()
        self._not_ready = None
        if why := layout.unmounted_reason(folder()):
            return self._hold_all_back(why)
        done, faults = self._recompute(), list[Exception]()
        with queue_database().read_session() as connection:
            done += self._read_all(connection, ending, faults)
            if not ending():
                _keep_events(connection, faults)
        if not ending():
            self._compact()
            depth_files.keep(folder())
        self._measure()
        if faults:
            raise faults[0]
        return done

    def much_came(self) -> bool:
        """Whether MUCH messages may have arrived since the last turn began. Errors are left for the turn to report."""
        try:
            with queue_database().read_session() as connection:
                return self._given_out is not None and given_out(connection) - self._given_out >= MUCH
        except DatabaseError:
            return False

    def _hold_all_back(self, why: str) -> int:
        for each in HistorySource.objects.filter(exists=True):
            ledger.held_back(each, why)
        return 0

    def _read_all(self, connection: Connection, ending: Callable[[], bool], faults: list[Exception]) -> int:
        done, began = 0, connection.all(postgresql().history.instant())[0].at
        found = sources(connection)
        self._given_out = given_out(connection)
        ledger.of_gone_tables()
        for each in found:
            try:
                done += self._read(connection, each, began, ending)
            except Exception as error:
                faults.append(error)
                ledger.went_wrong(each, java.describe(error))
                if java.ended() is not None:  # without Java this process can read no other source
                    break
        return done

    def _read(self, connection: Connection, each: HistorySource, began: datetime, ending: Callable[[], bool]) -> int:
        """Rows that arrive meanwhile wait for the next turn: under constant load this turn would never end.

        Halves the batch while others need this machine: even with one processor, a batch should end within a minute.
        """
        done, is_complete = 0, False
        while not (ending() or is_complete or is_held(each) or retry_backoff.is_resting(each)):
            is_busy = self._is_busy()  # asked per batch, before it is planned
            batch = planning.plan_batch(connection, each, self._most // 2 if is_busy else self._most)
            if batch is None or not self._run(connection, batch, is_busy):
                break
            each.refresh_from_db()
            done += 1
            is_complete = batch.is_last and batch.watermark >= began
        return done

    def _run(self, connection: Connection, batch: HistoryBatch, is_busy: bool) -> bool:
        """False: cancelled, taken by another driver, not readable yet, or no longer as planned."""
        from pgqueue_admin.history.spark import session as starting  # the first import of pyspark in this process
        from pgqueue_admin.history.spark.jobs import batch as job

        try:
            dsn = read_sessions.read_from(connection)
        except (read_sessions.StandbyUnreachable, read_sessions.PathOpen) as error:
            ledger.held_back(batch.source, str(error))
            return False
        session = self._session()
        is_local = starting.is_local(session.conf.get("spark.master"))
        parts = selects(connection, batch, _parts(batch.rows, is_local, is_busy))
        try:
            blocking_reason = partial(safe_upper_bound.batch_blocking_reason, connection, batch)
            job.run(session, batch, for_looking(dsn), parts, folder(), self._code_version, blocking_reason)
        except (ledger.Superseded, job.PlanMismatch) as error:
            log.warning("History: %s", error)
            return False
        log.info("History: %s rows of %s in batch %s.", batch.rows, batch.source.table, batch.pk)
        self._has_read()
        return True

    def _recompute(self) -> int:
        """Recompute one requested day per turn: a year of requests must not delay all else."""
        if (day := recompute_requests.due()) is None:
            return 0
        from pgqueue_admin.history.spark import cluster_check
        from pgqueue_admin.history.spark.jobs import recompute

        try:
            recompute.run(self._session(), day, folder())
        except (
            ledger.Superseded,
            recompute_requests.FilesMoved,
            cluster_check.ClusterNotReady,
        ) as other:  # e.g. requested once more: the request stays open
            log.info("History: %s", other)
        except Exception as error:  # a missing file must not stop the reading
            log.warning("History: %s was not recomputed: %s", day.day, error)
            recompute_requests.failed(day, f"{type(error).__name__}: {error}")
        else:
            return 1
        return 0

    def _compact(self) -> None:
        """Compact one day's small files, once nothing is left to read."""
        if (found := compactions.due(database_clock.now(), self._many)) is None:
            return
        from pgqueue_admin.history.spark.jobs import compaction

        try:
            compaction.run(self._session(), found, folder())
        except Exception as error:  # without effect on history; retried in an hour
            log.warning("History: files of %s were not compacted: %s", found.day, error)
        else:
            log.info("History: %s files of %s became one.", len(found.files), found.day)

    def _measure(self) -> None:
        if time.monotonic() >= self._measure_at:
            ttbr_risk.measure_waits()
            self._measure_at = time.monotonic() + MEASURE_EVERY

    def _session(self) -> Any:
        if self._spark is None:
            from pgqueue_admin.history.spark import cluster_check
            from pgqueue_admin.history.spark import session as starting

            self._watch = self._watch or jvm_watchdog.JvmWatchdog()
            master = settings.PGQUEUE["SPARK_MASTER"]
            if self._not_ready:
                raise self._not_ready
            about = {"logs": settings.LOG_FORMAT, "memory": settings.PGQUEUE["SPARK_MEMORY"]}
            started = starting.session(master, settings.PGQUEUE["VAR"] / "spark", **about)
            try:
                if not starting.is_local(master):
                    cluster_check.ready(started, folder())
            except Exception as error:  # further calls in this turn raise it at once; the next turn checks again
                self._not_ready = error
                started.stop()
                raise
            self._spark = started
        return self._spark

    def close(self) -> None:
        """Stop Spark; the next batch starts it anew. Raises JavaLost if this process cannot."""
        session, self._spark = self._spark, None
        try:
            if session is not None:
                session.stop()
        except Exception as error:
            java.await_end(_HUNG_UP)
            java.check()
            raise java.JavaLost(f"Spark's Java does not answer: {error}") from error
        java.check()


def _keep_events(connection: Connection, faults: list[Exception]) -> None:
    try:
        event_files.keep(connection, folder())
    except Exception as error:
        faults.append(error)


def _parts(rows: int, is_local: bool, is_busy: bool) -> int:
    """One part if two are no faster: few rows, or one processor, on one machine."""
    return 1 if is_local and (is_busy or rows < _SMALL) else 2

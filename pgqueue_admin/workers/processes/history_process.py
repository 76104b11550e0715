"""The history process: runs batches twice a minute, on request, or when many messages have arrived."""

import logging
import threading
import time
from contextlib import suppress
from datetime import datetime

import django.db
from django.conf import settings
from django.db import connections
from django.db.models.functions import Now

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.plan import recompute_requests
from pgqueue_admin.history.runtime import java
from pgqueue_admin.history.runtime.installation import Installation
from pgqueue_admin.history.runtime.java import JavaLost
from pgqueue_admin.history.runtime.jvm_cds import ClassArchiveBuild
from pgqueue_admin.history.sources import retry_backoff
from pgqueue_admin.history.storage.layout import folder
from pgqueue_admin.history.storage.orphan_cleanup import sweep
from pgqueue_admin.history.storage.retention import retain
from pgqueue_admin.models import HistorySource, database_clock
from pgqueue_admin.models.db_backend.base import only_short_ones_here
from pgqueue_admin.models.history_requests import wanted_now
from pgqueue_admin.osproc.cpu_affinity import CpuShare
from pgqueue_admin.osproc.low_priority import go_last
from pgqueue_admin.workers.processes.advisory_lock import SingletonLock
from pgqueue_admin.workers.processes.wakeup_pipe import ShutdownSignal
from pgqueue_admin.workers.reporting import liveness_file, process_identity, process_stats
from pgqueue_admin.workers.supervisor.process_recorder import record

log = logging.getLogger(__name__)
EVERY = 30.0  # seconds: with the time of two batches, history is less than a minute behind
FIRST = 10.0  # seconds: the console starts first
BEAT = 2.0
AFTER_TROUBLE = 15.0
TIDY_EVERY = 3600.0


def run() -> None:
    """Run until SIGTERM or SIGINT."""
    go_last()  # receivers on the same machine have priority
    ending = ShutdownSignal()
    process = HistoryProcess(ending)
    liveness_file.keep_beating()  # for the process alone: a batch may take any time
    threading.Thread(target=process.beat, name="heartbeat", daemon=True).start()  # a batch takes longer than a beat
    while not ending.wait(BEAT):
        process.run_once()
    process.close()


def once() -> int:
    """Read everything and recompute all requested days (one per turn); return the number of batches and days."""
    driver = BatchLoop(process_stats.code_version())
    try:
        done, wanted = driver.run_once(), _wanted()
        while wanted:
            made, before = driver.run_once(), wanted
            done, wanted = done + made, _wanted()
            if not made and wanted == before:  # e.g. its folder is missing: the request stays open
                break
        return done
    finally:
        with suppress(JavaLost):
            driver.close()


def held_back() -> list[str]:
    """Tables that are not fully read, each with the reason."""
    known = HistorySource.objects.filter(exists=True).exclude(blocked_reason="").order_by("table")
    return [f"{table}: {note}" for table, note in known.values_list("table", "blocked_reason")]


def _wanted() -> tuple[int, datetime] | None:
    """The day to recompute next, and when that was requested."""
    day = recompute_requests.due()
    return (day.pk, day.asked_at) if day else None


def tidy() -> tuple[int, int]:
    """Delete old files and orphans, without Spark; return how many files or folders of each."""
    kept, most, today = folder(), settings.PGQUEUE["HISTORY_RETENTION_DAYS"], database_clock.now().date()
    went = retain(kept, most, today), sweep(kept)
    if any(went):
        log.info("History: %s files were older than %s days, %s belonged to no batch.", went[0], most, went[1])
    return went


class HistoryProcess:
    """One per console database. Errors are recorded and retried: what is not read now is read later."""

    def __init__(self, ending: ShutdownSignal):
        self._ending, self._me, self._sole = ending, process_identity.mine(), SingletonLock("history")
        self._processors = CpuShare()
        self._driver = BatchLoop(
            process_stats.code_version(), is_busy=self._processors.are_others_busy, has_read=self._over
        )
        self._installing, self._trouble, self._batches = Installation(), "", 0
        self._absent = ""  # what was not installed at the last check
        self._since: datetime | None = None  # when that trouble began
        self._making = ClassArchiveBuild(settings.PGQUEUE["VAR"] / "spark")
        self._due_at = self._tidy_at = time.monotonic() + FIRST

    def run_once(self) -> None:
        self._processors.look()
        try:
            if self._sole.mine() and self._is_due():
                self._read()
            if self._sole.mine() and time.monotonic() >= self._tidy_at:
                self._tidy_at = time.monotonic() + TIDY_EVERY
                tidy()
            if self._batches:  # without batches, a faster start is useless
                self._making.run_once()
        except (django.db.Error, DatabaseError, OSError) as error:
            connections["default"].close()
            self._note(str(error))
        self._processors.rest()

    def close(self) -> None:
        self._making.close()
        with suppress(JavaLost):
            self._driver.close()
        self._sole.resign()

    def _is_due(self) -> bool:
        """Every EVERY seconds, on request, or when many messages have arrived: a burst is worth a batch at once."""
        return time.monotonic() >= self._due_at or wanted_now() or self._driver.much_came()

    def _read(self) -> None:
        self._due_at = time.monotonic() + EVERY
        was_absent, self._absent = self._absent, self._installing.wanted()
        if self._absent:
            self._note(self._absent)
            self._due_at = time.monotonic() + BEAT
            return
        if was_absent:
            self._note("")
        try:
            self._batches += self._driver.run_once(lambda: self._ending.asked)
            self._over()
        except (django.db.Error, DatabaseError):
            raise
        except Exception as error:  # Spark raises any error of Java
            self._note(java.said(error))
            self._stop_spark()
            self._due_at = time.monotonic() + AFTER_TROUBLE

    def _over(self) -> None:
        """Clear the trouble, unless a batch failed: that error stays until the batch is read, through its backoff."""
        self._note(retry_backoff.last_error())

    def _stop_spark(self) -> None:
        try:
            self._driver.close()
        except JavaLost as lost:
            log.error("History is read on by a new process, this one ends: %s", lost)
            raise SystemExit(1) from lost

    def beat(self) -> None:
        only_short_ones_here()
        while not self._ending.asked:
            self._processors.insist()
            try:
                self._report()
            except django.db.Error:
                connections["default"].close()
            time.sleep(BEAT)

    def _report(self) -> None:
        said = {
            "handled": self._batches,
            "last_error": self._trouble,
            "last_error_at": self._since,
            **process_stats.facts(),
        }
        record(self._me, {"role": "history", "state": "running", "heartbeat_at": Now(), **said})

    def _note(self, trouble: str) -> None:
        """Log when a problem begins and when it ends."""
        if trouble != self._trouble:
            self._since = database_clock.now() if trouble else None
        if trouble and trouble != self._trouble:
            log.warning("History is not read: %s", trouble)
        elif not trouble and self._trouble:
            log.warning("History is read again.")
        self._trouble = trouble

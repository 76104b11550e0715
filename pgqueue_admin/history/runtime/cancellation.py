"""Cancels Spark's work when its batch is cancelled in the ledger.

Also watches the time: a batch long without processor time gets a full share, because its snapshot holds back vacuum. If
Spark's tasks stop ending, Java is killed.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import django.db
from django.db import connections

from pgqueue_admin.history.runtime import jvm_watchdog
from pgqueue_admin.osproc import idle_cgroup

# Whether Spark's tasks still end: Java may answer while it waits for a stopped worker.
LOOK_EVERY = 30.0  # seconds between two checks
STILL = 1800.0  # seconds in which at least one active task must end, however little processor time they get


class BatchProgress:
    """Progress of one Spark action, checked beside it."""

    def __init__(self, spark: Any):
        self._spark = spark
        self._seen: frozenset[tuple[int, int]] = frozenset()
        self._since = self._looked = time.monotonic()

    def is_stuck(self) -> bool:
        """Checks every LOOK_EVERY seconds. Time between two Spark actions does not count."""
        now = time.monotonic()
        if now < self._looked + min(LOOK_EVERY, STILL / 2):
            return False
        self._looked = now
        seen = self._ended()
        if not seen or seen != self._seen:
            self._seen, self._since = seen, now
        return now >= self._since + STILL

    def _ended(self) -> frozenset[tuple[int, int]]:
        """Number of ended tasks for each active stage."""
        tracker = self._spark.sparkContext.statusTracker()
        known = ((stage, tracker.getStageInfo(stage)) for stage in tracker.getActiveStageIds())
        return frozenset((stage, info.numCompletedTasks) for stage, info in known if info)


EVERY = 2.0  # seconds
PATIENT = 60.0  # seconds on idle processors only


@contextmanager
def cancelled_with(spark: Any, is_wanted: Callable[[], bool]) -> Iterator[None]:
    """Inside, cancel Spark's jobs once ``is_wanted`` returns False; the call that waits for them then raises."""
    over = threading.Event()
    watching = threading.Thread(target=_watch, args=(spark, is_wanted, over), name="cancelling", daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def _watch(spark: Any, is_wanted: Callable[[], bool], over: threading.Event) -> None:
    insists_at, progress = time.monotonic() + PATIENT, BatchProgress(spark)
    try:
        while not over.wait(EVERY):
            if time.monotonic() >= insists_at:
                idle_cgroup.insist()
            with suppress(django.db.Error):  # the attempt itself reports it
                if not is_wanted():
                    spark.sparkContext.cancelAllJobs()
            if progress.is_stuck():
                return jvm_watchdog.end(f"None of Spark's tasks has ended for {STILL:.0f} s: its Java is ended.")
    finally:
        idle_cgroup.stand_back()
        connections["default"].close()

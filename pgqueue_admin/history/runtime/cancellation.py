"""Cancels Spark's work when the batch is cancelled in the ledger.

And at the clock: one that got no processor for long takes its share, or its snapshot would lie in the way of vacuum.
Where Spark's tasks stand still, Java ends.
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

# Whether Spark's tasks go on: Java may answer while what it waits for stands still, a worker that was stopped, say.
LOOK_EVERY = 30.0  # seconds from one look to the next
STILL = 1800.0  # seconds in which some task of those at work has ended, however little processor they get


class BatchProgress:
    """Of one act of Spark's, looked at beside it."""

    def __init__(self, spark: Any):
        self._spark = spark
        self._seen: frozenset[tuple[int, int]] = frozenset()
        self._since = self._looked = time.monotonic()

    def is_stuck(self) -> bool:
        """Looks now and then; what happens between two acts of Spark's is no standstill."""
        now = time.monotonic()
        if now < self._looked + min(LOOK_EVERY, STILL / 2):
            return False
        self._looked = now
        seen = self._ended()
        if not seen or seen != self._seen:
            self._seen, self._since = seen, now
        return now >= self._since + STILL

    def _ended(self) -> frozenset[tuple[int, int]]:
        """How many tasks have ended of each stage at work."""
        tracker = self._spark.sparkContext.statusTracker()
        known = ((stage, tracker.getStageInfo(stage)) for stage in tracker.getActiveStageIds())
        return frozenset((stage, info.numCompletedTasks) for stage, info in known if info)


EVERY = 2.0  # seconds
PATIENT = 60.0  # seconds in which only processors that nobody else wants are used


@contextmanager
def cancelled_with(spark: Any, is_wanted: Callable[[], bool]) -> Iterator[None]:
    """Within it, Spark's jobs are cancelled once ``is_wanted`` says no; what waits for them then raises."""
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
            with suppress(django.db.Error):  # the attempt itself will tell
                if not is_wanted():
                    spark.sparkContext.cancelAllJobs()
            if progress.is_stuck():
                return jvm_watchdog.end(f"None of Spark's tasks has ended for {STILL:.0f} s: its Java is ended.")
    finally:
        idle_cgroup.stand_back()
        connections["default"].close()

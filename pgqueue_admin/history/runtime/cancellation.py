"""A batch that was cancelled stops while Spark works on it: somebody looks at the ledger beside it.

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

from pgqueue_admin.history.runtime import jvm_watchdog, stuck
from pgqueue_admin.osproc import idle_cgroup

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
    insists_at, progress = time.monotonic() + PATIENT, stuck.BatchProgress(spark)
    try:
        while not over.wait(EVERY):
            if time.monotonic() >= insists_at:
                idle_cgroup.insist()
            with suppress(django.db.Error):  # the attempt itself will tell
                if not is_wanted():
                    spark.sparkContext.cancelAllJobs()
            if progress.is_stuck():
                return jvm_watchdog.end(f"None of Spark's tasks has ended for {stuck.STILL:.0f} s: its Java is ended.")
    finally:
        idle_cgroup.stand_back()
        connections["default"].close()

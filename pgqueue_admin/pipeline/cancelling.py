"""A batch that was cancelled stops while Spark works on it: somebody looks at the ledger beside it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import django.db
from django.db import connections

EVERY = 2.0  # seconds


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
    try:
        while not over.wait(EVERY):
            with suppress(django.db.Error):  # the attempt itself will tell
                if not is_wanted():
                    spark.sparkContext.cancelAllJobs()
    finally:
        connections["default"].close()

"""Checks a cluster: it has executors, Arrow, and the same view of the history folder."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

PATIENCE = 300.0  # seconds until the first executor: Java takes a minute to start on a busy machine


class ClusterNotReady(Exception):
    """What a cluster lacks, and where."""


def ready(spark: Any, folder: Path) -> None:
    """Check a cluster before a batch that it cannot finish. ``folder``: of history. Raises ClusterNotReady."""
    _wait_for_executors(spark)
    all_see(spark, folder)


def all_see(spark: Any, folder: Path) -> None:
    """Have every core of the cluster write a file there. Raises ClusterNotReady."""
    place = folder / f".seen-{uuid4()}"
    place.mkdir(parents=True)
    try:
        context = spark.sparkContext
        slots = range(context.defaultParallelism)
        told = set(context.parallelize(slots, len(slots)).map(_looking_at(str(place))).collect())
    finally:
        shutil.rmtree(place)
    if lacking := sorted(told - {""}):
        raise ClusterNotReady(
            f"PGQUEUE_HISTORY_DIR ({folder}) must be one folder that all machines of the cluster see, and each needs "
            f"pyarrow and adbc_driver_postgresql. {'; '.join(lacking)}."
        )


def _wait_for_executors(spark: Any) -> None:
    running = spark.sparkContext._jsc.sc()
    deadline = time.monotonic() + PATIENCE
    while running.getExecutorMemoryStatus().size() < 2:  # the driver itself counts as one
        if time.monotonic() > deadline:
            raise ClusterNotReady(
                f"{spark.sparkContext.master} gave no executor within {PATIENCE:.0f} s: its workers are gone, or have"
                " no core or too little memory left."
            )
        time.sleep(0.2)


def _looking_at(place: str) -> Callable[[int], str]:
    """A check that runs on executors: the problem there, or ""."""

    def look(number: int) -> str:
        import socket
        from pathlib import Path

        try:
            import adbc_driver_postgresql  # noqa: F401
            import pyarrow  # noqa: F401

            (Path(place) / str(number)).touch()
        except (ImportError, OSError) as error:
            return f"{socket.gethostname()}: {error}"
        return ""

    return look

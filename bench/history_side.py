"""Processes of bench.history: a cold first job, turns of a driver, a steady sender, a receiver that reports."""

import os
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers

PING = "Shop.Ping"
SETTINGS = EndpointSettings(on_exhausted="error_queue")
A_TENTH = 0.1


def cold(dsn: str, how: str, scratch: str, select: str) -> None:
    """Read, parse, write Parquet, read it back, roll up: all that a first batch makes Java and Python load."""
    from pgqueue_admin.history.spark.cds_warmup import rehearse
    from pgqueue_admin.history.spark.session import session

    spark = session("local[2,4]", Path(scratch)) if how == "ours" else by_default()
    rehearse(spark, Path(scratch) / how, dsn, [select])
    print("done", flush=True)
    spark.stop()


def by_default() -> Any:
    """A session with pyspark's defaults, but with this Python and these data sources."""
    from pyspark.sql import SparkSession

    from pgqueue_admin.history.spark import session as ours

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.getOrCreate()
    ours.carry_our_code(spark)
    return spark


def turns() -> None:
    """For each line of stdin, run one turn of a driver and print its seconds."""
    import django

    django.setup()
    from pgqueue_admin.history.batch_loop import BatchLoop

    driver = BatchLoop("bench")
    for _ in sys.stdin:
        began = time.monotonic()
        driver.run_once()
        print(time.monotonic() - began, flush=True)
    driver.close()


def send(dsn: str, rate: str) -> None:
    """Send this many messages a second, in steps of 0.1 s, until stdin ends."""
    endpoint, over = Endpoint("Sender", dsn, settings=SETTINGS), threading.Event()

    def end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=end, daemon=True).start()
    due = time.monotonic()
    while not over.is_set():
        endpoint.send_many("Busy", ({"at": time.time()} for _ in range(int(int(rate) * A_TENTH))), type=PING)
        due += A_TENTH
        over.wait(max(0.0, due - time.monotonic()))
    endpoint.stop()


def receive(dsn: str) -> None:
    """For each line of stdin, print how many were handled since the last, and the p95 of their critical times in ms."""
    handlers, taken = Handlers(), list[float]()

    @handlers.handle(PING)
    def ping(body: Any, context: Any) -> None:
        taken.append(time.time() - body["at"])

    endpoint = Endpoint("Busy", dsn, settings=SETTINGS, handlers=handlers)
    endpoint.start()
    for _ in sys.stdin:
        seen = taken[:]
        del taken[: len(seen)]
        p95 = statistics.quantiles(seen, n=20)[-1] if len(seen) > 1 else 0.0
        print(len(seen), 1000 * p95, flush=True)
    endpoint.stop()


if __name__ == "__main__":
    {each.__name__: each for each in (cold, turns, send, receive)}[sys.argv[1]](*sys.argv[2:])

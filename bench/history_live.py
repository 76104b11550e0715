"""How far history lags behind with a driver as the supervisor starts it, while messages arrive."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import history_archive as history
from bench.console import wait_until
from bench.table import Row, row
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.osproc.child_process import end, spawn

ROOT = Path(__file__).resolve().parent.parent
RATE = 500
LIVE_SECONDS = float(os.environ.get("LIVE_SECONDS", 120))
STARTED, READ = 180.0, 900.0  # seconds: the longest start of a driver, and its longest time for the existing backlog


def behind(archive: history.Archive, connection: Connection) -> Row:
    """The largest lag while RATE messages a second arrive, from the first time that history was complete."""
    over = threading.Event()
    feeding = threading.Thread(target=feed, args=(archive, over))
    archive.close()
    archive.fill(RATE)  # Spark starts with the first message
    with driver():
        ask(connection)
        wait_until(lambda: age(connection) < 30, READ, "a driver has read what lay there")
        before = archive.rows
        feeding.start()
        try:
            most = max(ages(connection, time.monotonic() + LIVE_SECONDS))
            rate = (archive.rows - before) / LIVE_SECONDS
        finally:
            over.set()
            feeding.join()
    if rate < RATE * 0.95:
        raise SystemExit(f"Only {rate:.0f} messages/s could be written; {RATE} are wanted.")
    return row(f"most behind in {LIVE_SECONDS:.0f} s of {RATE} messages/s", most, "s", floor=None, target=60)


@contextmanager
def driver() -> Iterator["subprocess.Popen[bytes]"]:
    child = spawn([sys.executable, "manage.py", "history"], cwd=ROOT)
    try:
        wait_until(lambda: os.getpriority(os.PRIO_PROCESS, child.pid) == 19, STARTED, "the driver steps back")
        yield child
    finally:
        end(child, (signal.SIGTERM, 120))


def ask(connection: Connection) -> None:
    connection.run("update pgqueue_console.pgqueue_historysource set requested_at = now(), paused_until = null")


def ages(connection: Connection, until: float) -> Iterator[float]:
    while time.monotonic() < until:
        yield age(connection)
        time.sleep(0.5)


def age(connection: Connection) -> float:
    """The lag in seconds; very large for a table never read to its end."""
    since = "coalesce(min(watermark), to_timestamp(0))"
    return float(
        connection.value(
            f"select extract(epoch from clock_timestamp() - {since}) from pgqueue_console.pgqueue_historysource"
        )
    )


def feed(archive: history.Archive, over: threading.Event) -> None:
    due = time.monotonic()
    with postgresql().connect(archive.dsn, for_handlers=True) as connection:
        while not over.is_set():
            history.insert(connection, archive.rows + 1, RATE)
            archive.rows += RATE
            due += 1
            over.wait(max(0.0, due - time.monotonic()))

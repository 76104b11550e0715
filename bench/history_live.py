"""History beside all else: how far it is behind what comes in, whom it slows, and how quickly its pages come."""

import http.client
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench import history
from bench.console import get, p95, process, wait_until
from bench.table import Row, row
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded import ports
from pgqueue_admin.embedded.child import end, spawn
from pgqueue_admin.transport import Endpoint

if TYPE_CHECKING:
    from bench.pipeline import Bench

ROOT = Path(__file__).resolve().parent.parent
RATE = 500
LIVE_SECONDS = float(os.environ.get("LIVE_SECONDS", 120))
WINDOW = 10.0
BACKLOG = 300_000  # more than a driver reads beside a window


def trends(connection: Connection, cookie: str) -> list[Row]:
    """Pages over 90 days, of one queue, whose figures lie beside those of all others, and of all."""
    history.figures(connection)
    port = ports.free()
    web = ("-m", "uvicorn", "pgqueue_admin.config.asgi:application", "--port", str(port), "--no-access-log")
    environment = {"PORT": str(port), "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.web_settings"}
    taken: dict[str, list[float]] = {"/trends/?w=90d&queue=Endpoint3": [], "/trends/?w=90d": [], "/healthz": []}
    with process(*web, **environment):
        wait_until(lambda: ports.answers(port, "127.0.0.1"))
        client = http.client.HTTPConnection("127.0.0.1", port)
        for number in range(65):
            for path, found in taken.items():
                spent = get(client, path, cookie)
                if number >= 5:
                    found.append(spent)
    one, every, floor = (p95(found) for found in taken.values())
    name = f"Trends, {history.DAYS} days of"
    return [
        row(f"{name} one queue, p95", one, "ms", floor=floor, target=50),
        row(f"{name} all queues, p95", every, "ms", floor=floor, target=50),
    ]


def while_it_runs(bench: "Bench", rounds: int) -> list[Row]:
    """A driver as the supervisor starts it: first beside receivers with a backlog to read, then as messages come in."""
    Endpoint("Busy", bench.dsn).create_queues()
    with postgresql().connect(bench.dsn) as connection:
        slowed = receivers(bench, connection, rounds)
        return [slowed, behind(bench, connection)]


@contextmanager
def driver() -> Iterator["subprocess.Popen[bytes]"]:
    child = spawn([sys.executable, "manage.py", "pipeline"], cwd=ROOT)
    try:
        wait_until(lambda: os.getpriority(os.PRIO_PROCESS, child.pid) == 19)
        yield child
    finally:
        end(child, (signal.SIGTERM, 60))


def receivers(bench: "Bench", connection: Connection, rounds: int) -> Row:
    """Windows without and with a batch that runs, by turns."""
    before, beside = [], []
    with side("receive", bench.dsn) as receiver, side("send", bench.dsn, str(RATE)):
        windowed(receiver)
        for _ in range(rounds):
            before.append(windowed(receiver))
            bench.fill(BACKLOG)
            with driver():
                ask(connection)
                wait_until(lambda: is_at_work(connection), 120)
                windowed(receiver, 2)
                beside.append(windowed(receiver))
    floor, found = statistics.median(before), statistics.median(beside)
    name = f"p95 critical time at {RATE}/s while a batch runs, against {floor:.1f} ms"
    return row(name, 100 * found / floor, "%", floor=None, target=150)


def ask(connection: Connection) -> None:
    connection.run("update pgqueue_historysource set wanted_at = now()")


def is_at_work(connection: Connection) -> bool:
    return bool(connection.value("select exists (select from pgqueue_historybatch where state = 'running')"))


def windowed(receiver: "subprocess.Popen[str]", seconds: float = WINDOW) -> float:
    """The p95 of what was handled in that time. Raises SystemExit where receivers did not keep up."""
    told(receiver)
    time.sleep(seconds)
    handled, p95_ms = told(receiver)
    if handled < RATE * seconds * 0.9:
        print(f"only {handled:.0f} of {RATE * seconds:.0f} messages were handled in {seconds:.0f} s", file=sys.stderr)
    return p95_ms


def told(receiver: "subprocess.Popen[str]") -> tuple[float, float]:
    assert receiver.stdin
    assert receiver.stdout
    print(file=receiver.stdin, flush=True)
    handled, p95_ms = receiver.stdout.readline().split()
    return float(handled), float(p95_ms)


@contextmanager
def side(*words: str) -> Iterator["subprocess.Popen[str]"]:
    """It ends when its stdin does."""
    command = [sys.executable, "-m", "bench.history_side", *words]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.communicate(timeout=120)


def behind(bench: "Bench", connection: Connection) -> Row:
    """The most that history was behind while RATE messages a second came in, from the first time it was complete."""
    most, over = 0.0, threading.Event()
    with driver():
        ask(connection)
        wait_until(lambda: age(connection) < 60, 600)
        feeding = threading.Thread(target=feed, args=(bench, over))
        feeding.start()
        until = time.monotonic() + LIVE_SECONDS
        while time.monotonic() < until:
            most = max(most, age(connection))
            time.sleep(0.5)
        over.set()
        feeding.join()
    name = f"most behind in {LIVE_SECONDS:.0f} s of {RATE} messages/s"
    return row(name, most, "s", floor=None, target=60)


def age(connection: Connection) -> float:
    found = connection.value(
        "select extract(epoch from clock_timestamp() - min(complete_to)) from pgqueue_historysource"
    )
    return float(found)


def feed(bench: "Bench", over: threading.Event) -> None:
    due = time.monotonic()
    with postgresql().connect(bench.dsn) as connection:
        while not over.is_set():
            history.insert(connection, bench.rows + 1, RATE)
            bench.rows += RATE
            due += 1
            over.wait(max(0.0, due - time.monotonic()))

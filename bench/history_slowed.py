"""How a batch slows receivers: RATE messages a second are sent while history rests and while it reads."""

import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

from bench import children
from bench.children import side
from bench.console import wait_until
from bench.history_archive import Archive
from bench.history_live import RATE, STARTED, ask, driver
from bench.table import Row, row
from pgqueue_admin.dialects import Connection
from pgqueue_admin.transport import Endpoint

WINDOW = float(os.environ.get("WINDOW", 20))
LONGEST = 300.0  # longest time of one batch, in seconds
_REST = "update pgqueue_console.pgqueue_historysource set paused_until = now() + interval '1 hour'"
_WORK = """
select exists (select from pgqueue_console.pgqueue_historybatch where state = 'running')
  or exists (select from pgqueue_console.pgqueue_historycompaction where state = 'running')
"""


class Window(NamedTuple):
    handled: float  # per second
    p95: float  # of the critical time, in ms


def slowed(archive: Archive, connection: Connection, rounds: int) -> list[Row]:
    """Alternate a window without and one with a whole batch; the very first batch only warms Spark."""
    from pgqueue_admin.history.plan.planning import MOST

    archive.close()
    Endpoint("Busy", archive.dsn).create_queues()
    archive.fill(MOST * (rounds + 1))
    connection.run("checkpoint")
    alone, beside = list[Window](), list[Window]()
    with driver(), side("receive", archive.dsn) as receiver, side("send", archive.dsn, str(RATE)):
        one_batch(connection)
        for _ in range(rounds):
            settle(receiver)
            alone.append(windowed(receiver, lambda: time.sleep(WINDOW)))
            beside.append(windowed(receiver, lambda: one_batch(connection)))
    return rows(alone, beside)


def rows(alone: list[Window], beside: list[Window]) -> list[Row]:
    floor, found = (statistics.median(window.p95 for window in windows) for windows in (alone, beside))
    handled = min(window.handled for window in [*alone, *beside])
    name = f"p95 critical time at {RATE}/s while a batch runs, against {floor:.1f} ms"
    return [
        row(name, 100 * found / floor, "%", floor=None, target=200),
        row("the least that receivers handled meanwhile", handled, "/s", floor=RATE, target=0.95),
    ]


def one_batch(connection: Connection) -> None:
    """Wait from the start of a batch until the driver rests again."""
    ask(connection)
    wait_until(lambda: is_at_work(connection), STARTED, "a driver has begun a batch")
    connection.run(_REST)
    wait_until(lambda: not is_at_work(connection), LONGEST, "the batch has ended")


def is_at_work(connection: Connection) -> bool:
    return bool(connection.value(_WORK))


def settle(receiver: children.Child) -> None:
    """Let receivers catch up, so that a backlog does not spill into the next window."""
    few = f"receivers keep up with {RATE}/s while history rests: this machine has too much else to do"
    wait_until(lambda: windowed(receiver, lambda: time.sleep(2)).p95 < 1000, STARTED, few)


def windowed(receiver: children.Child, lasting: Callable[[], object]) -> Window:
    """The messages handled meanwhile."""
    children.ask(receiver)
    children.answer(receiver)
    began = time.monotonic()
    lasting()
    children.ask(receiver)
    handled, p95_ms = children.answer(receiver)
    return Window(handled / (time.monotonic() - began), p95_ms)

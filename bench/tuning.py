"""The effect of concurrency, processes, batch size and peek delay on throughput and waiting; ``make bench-tuning``.

Curves for docs/evidence/figures.md (T18): medians of interleaved rounds, written after each. ``ROUNDS``,
``MESSAGES``, ``WAITS`` make it shorter; after the first, no round starts that would not end within ``MINUTES``.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from bench.engine_queues import Queues
from bench.folder import temporary
from bench.table import RESULTS
from pgqueue_admin.embedded.postgresql import PostgreSQL

ROUNDS = int(os.environ.get("ROUNDS", 3))
MESSAGES = int(os.environ.get("MESSAGES", 10_000))
WAITS = int(os.environ.get("WAITS", 20))
MINUTES = float(os.environ.get("MINUTES", "inf"))
LONGEST_POINT = 120.0  # seconds: a longer run is a fault, not a measurement
HANDLERS = {"does nothing": 0.0, "waits 10 ms": 0.01}
CURVES = {"concurrency": "concurrency", "processes": "processes", "messages a transaction": "batch"}
PEEK_DELAY = "peek delay"


class Point(NamedTuple):
    """``seconds``: how long each handler waits."""

    curve: str
    seconds: float
    concurrency: int = 8
    processes: int = 1
    batch: int = 1
    peek_delay: float = 1.0

    @property
    def messages(self) -> int:
        """Fewer if handlers wait: then equally many for each slot, in whole batches."""
        slots = self.concurrency * self.processes
        return min(MESSAGES, max(100, 2 * self.batch) * slots) if self.seconds else MESSAGES


def points() -> Iterator[Point]:
    for seconds in HANDLERS.values():
        for concurrency in (1, 2, 4, 8, 16, 32):
            yield Point("concurrency", seconds, concurrency=concurrency)
        for processes in (1, 2, 4):
            yield Point("processes", seconds, processes=processes)
        for batch in (1, 10, 50, 200):
            yield Point("messages a transaction", seconds, batch=batch)
    for delay in (0.1, 0.5, 1.0, 2.0):
        yield Point(PEEK_DELAY, 0.0, peek_delay=delay)


def main() -> None:
    with temporary() as folder:
        server = PostgreSQL(folder / "postgresql")
        server.start()
        try:
            for found in measured(Queues(server)):
                publish(found)
        finally:
            server.stop()
    print(markdown(found))


def measured(queues: Queues) -> Iterator[dict[Point, float]]:
    """After each round, the medians so far."""
    wanted = list(points())
    found: dict[Point, list[float]] = {each: [] for each in wanted}
    began = time.monotonic()
    for number in range(1, ROUNDS + 1):
        for each in wanted:
            queues.empty()
            found[each].append(waited(queues, each) if each.curve == PEEK_DELAY else rate(queues, each))
        yield {each: statistics.median(figures) for each, figures in found.items()}
        spent = time.monotonic() - began
        print(f"round {number} of {ROUNDS}, {spent:.0f} s", flush=True)
        if spent * (number + 1) / number > 60 * MINUTES:
            return


def rate(queues: Queues, point: Point) -> float:
    """Messages per second of all processes together, from the first start to an empty queue."""
    queues.fill("Engine", point.messages)
    asked = ["work_off", point.concurrency, point.messages, point.batch, point.seconds]
    with ExitStack() as sides:
        children = [sides.enter_context(side(queues, *asked)) for _ in range(point.processes)]
        for child in children:
            assert child.stdout
            child.stdout.readline()
        began = time.monotonic()
        for child in children:
            print("go", file=child.stdin, flush=True)
        while queues.connection.value('select exists (select from "Engine")'):  # messages in flight are not done
            assert time.monotonic() < began + LONGEST_POINT, f"{point} was not done in {LONGEST_POINT:.0f} s"
            time.sleep(0.02)
        took = time.monotonic() - began
        for child in children:
            child.communicate("stop\n", timeout=LONGEST_POINT)
    return point.messages / took


def waited(queues: Queues, point: Point) -> float:
    """The median wait in milliseconds of a message sent without NOTIFY to an idle queue."""
    with side(queues, "waits", point.concurrency, WAITS, point.batch, point.peek_delay) as child:
        return float(child.communicate(timeout=LONGEST_POINT + 2 * WAITS * point.peek_delay)[0])


@contextmanager
def side(queues: Queues, *asked: object) -> Iterator["subprocess.Popen[str]"]:
    """A child process that ends with the block, however the block ends."""
    words = [sys.executable, "-m", "bench.tuning_side", queues.dsn, *map(str, asked)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def publish(found: dict[Point, float]) -> None:
    RESULTS.mkdir(exist_ok=True)
    kept = [{**point._asdict(), "figure": round(figure, 1)} for point, figure in found.items()]
    (RESULTS / "tuning.json").write_text(json.dumps(kept, indent=1) + "\n")


def markdown(found: dict[Point, float]) -> str:
    """The curves as tables for reading; docs/evidence/figures.md takes them from tuning.json."""
    return "\n\n".join([*(_rates(found, curve) for curve in CURVES), _waits(found)])


def _rates(found: dict[Point, float], curve: str) -> str:
    along = CURVES[curve]
    by_place = {
        (getattr(point, along), point.seconds): figure for point, figure in found.items() if point.curve == curve
    }
    rows = [
        [str(place), *(f"{by_place[place, seconds]:,.0f}" for seconds in HANDLERS.values())]
        for place in dict.fromkeys(place for place, _ in by_place)
    ]
    return _table([curve, *(f"messages/s, handler {what}" for what in HANDLERS)], rows)


def _waits(found: dict[Point, float]) -> str:
    rows = [
        [f"{point.peek_delay:g} s", f"{figure:,.0f} ms"] for point, figure in found.items() if point.curve == PEEK_DELAY
    ]
    return _table([PEEK_DELAY, "a message waits, median"], rows)


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])


if __name__ == "__main__":
    main()

"""What concurrency, processes, batch size and peek delay do to a backlog and to a wait; ``make bench-tuning``.

Curves for docs/tuning.md (T18): medians of interleaved rounds. ``ROUNDS`` and ``MESSAGES`` make it shorter.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.engine import Bench
from bench.folder import temporary
from bench.table import RESULTS
from pgqueue_admin.embedded.postgresql import PostgreSQL

ROUNDS = int(os.environ.get("ROUNDS", 3))
MESSAGES = int(os.environ.get("MESSAGES", 10_000))
HANDLERS = {"does nothing": 0.0, "waits 10 ms": 0.01}


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
        """Fewer where each takes its time."""
        return min(MESSAGES, 100 * self.concurrency * self.processes) if self.seconds else MESSAGES


def points() -> Iterator[Point]:
    for seconds in HANDLERS.values():
        for concurrency in (1, 2, 4, 8, 16, 32):
            yield Point("concurrency", seconds, concurrency=concurrency)
        for processes in (1, 2, 4):
            yield Point("processes", seconds, processes=processes)
        for batch in (1, 10, 50, 200):
            yield Point("batch", seconds, batch=batch)
    for delay in (0.1, 0.5, 1.0, 2.0):
        yield Point("peek delay", 0.0, peek_delay=delay)


def main() -> None:
    with temporary() as folder:
        server = PostgreSQL(folder / "postgresql")
        server.start()
        try:
            publish(measure(Bench(server, Path())))
        finally:
            server.stop()


def measure(bench: Bench) -> dict[Point, float]:
    wanted = list(points())
    found: dict[Point, list[float]] = {each: [] for each in wanted}
    for _ in range(ROUNDS):
        for each in wanted:
            bench.empty()
            found[each].append(waited(bench, each) if each.curve == "peek delay" else rate(bench, each))
    return {each: statistics.median(figures) for each, figures in found.items()}


def rate(bench: Bench, point: Point) -> float:
    """Messages per second of all processes together, from the first start to an empty queue."""
    bench.fill("Engine", point.messages)
    asked = ["work_off", point.concurrency, point.messages, point.batch, point.seconds]
    children = [side(bench, *asked) for _ in range(point.processes)]
    for child in children:
        assert child.stdout
        child.stdout.readline()
    began = time.monotonic()
    for child in children:
        print("go", file=child.stdin, flush=True)
    while bench.connection.value('select exists (select from "Engine" for update skip locked)'):
        time.sleep(0.02)
    took = time.monotonic() - began
    for child in children:
        child.communicate("stop\n", timeout=120)
    return point.messages / took


def waited(bench: Bench, point: Point) -> float:
    """Milliseconds, the median, that a message of a sender who tells nobody waits in an idle queue."""
    child = side(bench, "waits", point.concurrency, 20, point.batch, point.peek_delay)
    return float(child.communicate(timeout=600)[0])


def side(bench: Bench, *asked: object) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", "bench.tuning_side", bench.dsn, *map(str, asked)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def publish(found: dict[Point, float]) -> None:
    RESULTS.mkdir(exist_ok=True)
    kept = [{**point._asdict(), "figure": round(figure, 1)} for point, figure in found.items()]
    (RESULTS / "tuning.json").write_text(json.dumps(kept, indent=1) + "\n")
    for point, figure in found.items():
        print(f"{point!s:110} {figure:10.1f}")


if __name__ == "__main__":
    main()

"""The speed of reading history, its delay, and its effect on receivers; ``make bench-history``.

Floors are of the same run, rounds alternate, medians are compared. ``ROUNDS``, ``ROWS`` (of a backlog),
``HISTORY_ROWS`` (of "flat"), ``LIVE_SECONDS`` (of "behind") and ``WINDOW`` (of "slowed", in seconds) make it shorter
or longer. ``PARTS`` selects some of ``parts``; the results of all others stay unchanged.
"""

import os
import secrets
import statistics
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench import (
    history_archive,
    history_bare,
    history_beside,
    history_flat,
    history_live,
    history_slowed,
    history_start,
    history_trends,
)
from bench.folder import temporary
from bench.history_archive import WARM, seconds
from bench.parts import Part, measure
from bench.table import Row, measured_in, row
from pgqueue_admin.embedded.postgresql import PostgreSQL

ROUNDS = int(os.environ.get("ROUNDS", 3))
ROWS = int(os.environ.get("ROWS", 500_000))
HALF, SMALL = ROWS // 2, ROWS // 10
FLAT = ROUNDS + 2  # rounds: each gives a ratio of two runs, which varies more than a single run
FIRST = 2000  # a cold driver reads half of them


def main() -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(temporary())
        server = history_archive.server(folder)
        stack.callback(server.stop)
        dsn = server.dsn("bench")
        os.environ.update(
            DATABASE_URL=dsn, PGQUEUE_STATE_DIR=str(folder / "var"),
            SECRET_KEY=secrets.token_hex(32), PGQUEUE_LOG_LEVEL="WARNING",
            DJANGO_SETTINGS_MODULE="pgqueue_admin.config.settings", SPARK_MASTER="local[2,4]",
        )  # fmt: skip
        measure("history", parts(stack, server, folder))


def parts(stack: ExitStack, server: PostgreSQL, folder: Path) -> dict[str, Part]:
    from bench.console import prepare

    cookie = prepare()
    bench = Bench(server.dsn("bench"), stack)
    return {
        "batches": lambda: measured_in(ROUNDS, ROWS, bench.batches()),
        "beside": lambda: measured_in(ROUNDS, ROWS, history_beside.beside(bench, ROWS, ROUNDS)),
        "bare": lambda: measured_in(ROUNDS, ROWS, history_bare.bare(bench, ROWS, ROUNDS, folder)),
        "start": lambda: measured_in(ROUNDS, FIRST, [bench.cold(folder / "var/spark")]),
        "trends": lambda: history_trends.trends(bench.holding(FIRST).connection, cookie),
        "behind": lambda: [history_live.behind(bench, bench.connection)],
        "slowed": lambda: measured_in(ROUNDS, None, history_slowed.slowed(bench, bench.connection, ROUNDS)),
        "flat": lambda: measured_in(FLAT, SMALL, [history_flat.flat(server, folder, SMALL, FLAT)]),
    }


class Bench(history_archive.Archive):
    """The measurements on the archive, in rounds."""

    def batches(self) -> list[Row]:
        """Each round measures the floor, reading alone, a whole batch, and a batch of half the rows."""
        found = [self.beside_floor() for _ in range(WARM + ROUNDS)][WARM:]
        floor, read, rate, of_half = map(statistics.median, zip(*found, strict=True))
        name = f"a backlog of {ROWS:,} rows, from planning to figures"
        linear = 100 * of_half / rate
        return [
            row("reading in Spark, against binary COPY, 2 streams", read, "/s", floor=floor, target=0.45),
            row(name, rate, "/s", floor=floor, target=0.08),
            row(f"time for a row of {ROWS:,}, against one of {HALF:,}", linear, "%", floor=None, target=110),
        ]

    def beside_floor(self) -> tuple[float, float, float, float]:
        """Rows per second: copied, read into Spark, in a whole batch, and in one of half the size."""
        self.fill(ROWS)
        parts = self.selects(ROWS)
        works = (partial(history_archive.copied, self.dsn, parts), partial(self.read, parts), self.driver.run_once)
        copied, read, whole = (ROWS / seconds(work) for work in works)
        self.fill(HALF)
        return copied, read, whole, HALF / seconds(self.driver.run_once)

    def cold(self, scratch: Path) -> Row:
        self.fill(FIRST)
        parts = self.selects(FIRST)
        self.driver.run_once()
        return history_start.cold(self.dsn, scratch, parts[0], ROUNDS)


if __name__ == "__main__":
    main()

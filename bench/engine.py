"""The engine's cost over bare libpq: sends, receives, depth, dead rows, wake-up, memory; ``make bench-engine``.

Rounds of engine and floor alternate, and medians are compared: other load on the machine affects both. Send and
receive run in their own process, as endpoints do. ``ROUNDS`` and ``MESSAGES`` in the environment make it shorter,
``LONG=1`` has the worker child handle a million messages, and ``PARTS`` selects some of ``parts``.
"""

import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import floor, worker
from bench.engine_queues import Queues
from bench.folder import temporary
from bench.parts import Part, measure
from bench.queues import hold_snapshot
from bench.table import Row, row
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL

# The statements of an idle endpoint, from the server's log.
_ASKED = re.compile(r"pgqueue Engine@.* (?:LOG:  (?:statement|execute [^:]*)|DETAIL:  prepare): (.*)")
_QUEUE = '"public"."Engine" '


class Log:
    def __init__(self, file: Path):
        self._file = file
        self._from = file.stat().st_size

    def statements_a_peek(self) -> float:
        """Statements on the queue per peek, from the first to the last; the delayed table's, ever rarer, do not count.

        Raises SystemExit if there are fewer than two peeks.
        """
        with self._file.open(encoding="utf-8") as lines:
            lines.seek(self._from)
            found = (match[1] for match in map(_ASKED.search, lines) if match)
            asked = [statement for statement in found if _QUEUE in statement]
        peeks = [place for place, statement in enumerate(asked) if statement.startswith("with head as")]
        if len(peeks) < 2:
            raise SystemExit("The idle endpoint did not peek twice.")
        return (peeks[-1] - peeks[0]) / (len(peeks) - 1)


@contextmanager
def logged(server: PostgreSQL, dsn: str) -> Iterator[Log]:
    """Log all statements. Raises SystemExit if a peek would scan the table instead of its index."""
    with postgresql().connect(dsn, for_handlers=True) as connection:
        peek = postgresql().queue.peek(table=Address("public", "Engine")).as_string(None)
        plan = "\n".join(each[0] for each in connection.all(f"explain {peek}"))
        if "Seq Scan" in plan:
            raise SystemExit(f"The peek reads its whole table:\n{plan}")
        database = connection.value("select current_database()")
        connection.run(f"alter database {database} set log_statement = 'all'")
        try:
            yield Log(server.home / "postgresql.log")
        finally:
            connection.run(f"alter database {database} reset log_statement")


ROUNDS = int(os.environ.get("ROUNDS", 5))
MESSAGES = int(os.environ.get("MESSAGES", 20_000))
IN_BATCHES = MESSAGES * 5  # with fewer, it ends before each slot has opened its session
DEEP = MESSAGES * 50
DEAD = MESSAGES * 5
AT_ONCE = 8
IDLE_DELAYS = 30


def main() -> None:
    with temporary() as folder:
        server = PostgreSQL(folder / "postgresql")
        server.start()
        try:
            measure("engine", Bench(server, floor.build(folder)).parts())
        finally:
            server.stop()


class Bench:
    def __init__(self, server: PostgreSQL, program: Path):
        self.server = server
        self.program = program
        self.queues = Queues(server)

    def parts(self) -> dict[str, Part]:
        return {
            "sends": self.sends,
            "receives": self.receives,
            "depth": lambda: [self.deep(), self.dead_rows()],
            "idle": lambda: [self.wake_up(), self.idle()],
            "memory": lambda: worker.memory(self.queues),
        }

    def sends(self) -> list[Row]:
        return [
            self.against("send, one per transaction, 8 threads", "send", 0.6),
            self.against("send in batches of 100", "batch", 0.8, threads=1, messages=IN_BATCHES),
        ]

    def receives(self) -> list[Row]:
        return [
            self.against("receive, 8 at once, handler does nothing", "receive", 0.6, fill=True),
            self.against("receive, 8 at once, handler sends one", "receive_send", 0.45, fill=True),
            self.against("receive in batches of 50, 8 at once", "receive_batch", 0.6, fill=True, messages=IN_BATCHES),
        ]

    def against(
        self,
        name: str,
        what: str,
        target: float,
        threads: int = AT_ONCE,
        fill: bool = False,
        messages: int = MESSAGES,
    ) -> Row:
        ours, floors = [], []
        for _ in range(ROUNDS):
            self.queues.empty()
            if fill:
                self.queues.fill("Engine", messages)
                self.queues.fill("Floor", messages)
            ours.append(self.engine(what, threads, messages))
            floors.append(floor.run(self.program, self.queues.dsn, what, threads, messages))
        return row(name, statistics.median(ours), "/s", floor=statistics.median(floors), target=target)

    def deep(self) -> Row:
        return self.compared(
            f"receive from {DEEP:,} rows against {MESSAGES:,}", 0.9, lambda: self.queues.fill("Engine", DEEP)
        )

    def dead_rows(self) -> Row:
        with hold_snapshot(self.queues.dsn):
            return self.compared(f"receive behind {DEAD:,} dead rows, vacuum held, against clean", 0.8, self.bury)

    def bury(self) -> None:
        self.queues.fill("Engine", DEAD + MESSAGES)
        self.queues.connection.run(f'delete from "Engine" where seq <= {DEAD}')

    def compared(self, name: str, target: float, prepare: Callable[[], None]) -> Row:
        """Compare the engine with itself: the floor is the queue without the slowing factor."""
        ours: list[float] = []
        floors: list[float] = []
        for _ in range(ROUNDS):
            for found, lay_out in ((floors, lambda: self.queues.fill("Engine", MESSAGES)), (ours, prepare)):
                self.queues.empty()
                lay_out()
                found.append(self.engine("receive", AT_ONCE))
        return row(name, statistics.median(ours), "/s", floor=statistics.median(floors), target=target)

    def wake_up(self) -> Row:
        self.queues.empty()
        value = statistics.median(self.engine("wake_up", 1) for _ in range(ROUNDS))
        return row("wake-up by NOTIFY, commit to handler, p50", value, "ms", floor=None, target=6)

    def idle(self) -> Row:
        """Statements per peek delay between the first peek and the last; each peek must use the index."""
        self.queues.empty()
        name = "idle endpoint, statements on its queue in each peek delay"
        with logged(self.server, self.queues.dsn) as log:
            self.engine("idle", AT_ONCE, IDLE_DELAYS)
            return row(name, log.statements_a_peek(), "statements", floor=None, target=1)

    def engine(self, what: str, threads: int, messages: int = MESSAGES) -> float:
        asked = [sys.executable, "-m", "bench.engine_side", self.queues.dsn, what, str(threads), str(messages)]
        return float(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()

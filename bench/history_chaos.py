"""Twelve writers, two competing drivers, pruning, server restarts; kill -9 at random and at each named point.

``make bench-history-chaos``: ``SECONDS`` in the environment makes it shorter, but every point still gets its kill.
The printed figures are in bench/results/history_chaos.json. Exits with 1 if a committed row is not in history exactly
once, or if a figure differs from plain SQL.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.console import wait_until
from bench.folder import temporary
from bench.table import RESULTS, circumstances
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests.history.expected_counts import compared, noted
from tests.history.pause_points import POINTS, Point, held_at, is_waited_for
from tests.history.writers import Writer

SECONDS = float(os.environ.get("SECONDS", 300))
WRITERS, DRIVERS, RESTARTS = 12, 2, 3
LIVES = 10.0, 60.0  # seconds after which an unfinished driver is killed
_ROOT = Path(__file__).resolve().parent.parent
AT_RANDOM = 1  # least number of random kills before each one at a named point
# The planner reads the table that the second point locks: it arrives while the first's batch is still planned.
ROUNDS = (POINTS[:2], *([point] for point in POINTS[2:]))
HELD = 300.0  # seconds until a driver stops there, at most
ORPHANED = 5.0  # seconds after which a prepared transaction has lost its writer
NEVER = ("lost", "twice", "never committed")
_GIVEN_UP = """
select gid from pg_prepared_xacts where database = current_database() and prepared < now() - %(age)s * interval '1 s'
"""


class Stubborn(Writer):
    """A writer that restarts when the server is back."""

    def run(self) -> None:
        while self._goes_on(0):
            with suppress(DatabaseError):
                super().run()
            time.sleep(0.2)


class Drivers:
    """Each driver runs until it has read everything or is killed; then another replaces it."""

    def __init__(self, environ: dict[str, str]):
        self._environ, self._random = environ, random.Random(1)
        self._alive: dict[subprocess.Popen[bytes], float] = {}
        self._rounds, self._at_random = deque(ROUNDS), 0
        self.done: Counter[str] = Counter()
        self.killed_at: Counter[str] = Counter()

    def look(self) -> None:
        self._reap()
        for driver in [each for each, until in self._alive.items() if time.monotonic() > until]:
            self._kill(driver)
            self._at_random += 1
        self._start(DRIVERS)

    def _reap(self) -> None:
        for driver in [each for each in self._alive if each.poll() is not None]:
            self.done["ended" if driver.returncode == 0 else "failed"] += 1
            del self._alive[driver]

    def _start(self, many: int) -> None:
        while len(self._alive) < many:
            self._alive[run("history", "run", environ=self._environ)] = time.monotonic() + self._random.uniform(*LIVES)

    def stand_still(self) -> None:
        """Kill at the next named points, once enough drivers were killed at random."""
        if self._at_random >= AT_RANDOM:
            for point in self._rounds[0]:
                self._kill_at(point)
            self._rounds.rotate(-1)
            self._at_random = 0

    def _kill_at(self, point: Point) -> None:
        """Hold the first driver that reaches the point, then kill all."""
        with postgresql().connect(self._environ["DATABASE_URL"], for_handlers=True) as gate:
            given_up(gate, ORPHANED)  # it would block the table lock
            with held_at(point, gate):
                wait_until(lambda: self._stands_still(gate), HELD, f"a driver was {point.name}")
                self.close()
        self.killed_at[point.name] += 1

    def _stands_still(self, gate: Connection) -> bool:
        """Keep one driver alive until it waits there: a second would take over its batch, and neither would get far."""
        self._reap()
        self._start(1)
        return is_waited_for(gate)

    def _kill(self, driver: "subprocess.Popen[bytes]") -> None:
        driver.kill()
        driver.wait()
        self.done["killed"] += 1
        del self._alive[driver]

    def close(self) -> None:
        for driver in list(self._alive):
            self._kill(driver)


def run(*arguments: str, environ: dict[str, str]) -> "subprocess.Popen[bytes]":
    log = (Path(environ["PGQUEUE_STATE_DIR"]) / "drivers.log").open("ab")
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.Popen(command, cwd=_ROOT, env=environ, stdout=log, stderr=log, start_new_session=True)


def finish(*arguments: str, environ: dict[str, str]) -> None:
    if run(*arguments, environ=environ).wait(900):
        raise SystemExit(f"manage.py {' '.join(arguments)} failed: see {environ['PGQUEUE_STATE_DIR']}/drivers.log")


@contextmanager
def world(folder: Path) -> Iterator[tuple[PostgreSQL, dict[str, str]]]:
    """A server with the console's and the engine's tables, and the environment that programs need to use it."""
    server = PostgreSQL(folder / "postgresql")
    server.start()
    environ = {**os.environ, "DATABASE_URL": server.dsn(), "QUEUES_URL": server.dsn(), "SPARK_MASTER": "local[2,4]"}
    environ |= {
        "PGQUEUE_HISTORY_DIR": str(folder / "history"),
        "PGQUEUE_STATE_DIR": str(folder),
        "PGQUEUE_ARCHIVE_RETENTION_DAYS": "1",
    }
    environ["DJANGO_SETTINGS_MODULE"] = "pgqueue_admin.config.base_settings"
    try:
        finish("migrate", environ=environ)
        finish("engine_schema", environ=environ)
        with postgresql().connect(server.dsn(), for_handlers=True) as connection:
            noted(connection)
        yield server, environ
    finally:
        server.stop()


def torture(server: PostgreSQL, drivers: Drivers, prune: Callable[[], int]) -> None:
    """Run for SECONDS, and until each point had its kill."""
    began, over = time.monotonic(), threading.Event()
    writers = [Stubborn(server.dsn(), number, lambda _: not over.is_set()) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    restarts = [began + SECONDS * share / (RESTARTS + 1) for share in range(RESTARTS, 0, -1)]
    while time.monotonic() < began + SECONDS or len(drivers.killed_at) < len(POINTS):
        drivers.look()
        drivers.stand_still()
        if restarts and time.monotonic() > restarts[-1]:
            restarts.pop()
            restart(server)
            drivers.done["restarts"] += 1
        drivers.done["pruned"] += prune()
        time.sleep(0.5)
    over.set()
    for writer in writers:
        writer.join()
    drivers.done["seconds"] = round(time.monotonic() - began)


def restart(server: PostgreSQL) -> None:
    assert server.pid
    os.kill(server.pid, signal.SIGQUIT)  # immediate shutdown: no waiting for sessions, no checkpoint
    wait_until(lambda: not server.running)
    server.start()


def pruner() -> Callable[[], int]:
    """Prune everything that history has read, however young: a row pruned too early is lost."""
    import django.db

    from pgqueue_admin.archive.retention import as_of, prune
    from pgqueue_admin.history import freshness
    from pgqueue_admin.models import database_clock

    def once() -> int:
        try:
            with postgresql().connect(os.environ["DATABASE_URL"], for_handlers=True) as connection:
                (now,) = connection.all(postgresql().history.instant())
                read = freshness.of_archive(now.cluster, now.archive).snapshot
                return prune(connection, database_clock.now(), read, as_of(now.cluster, now.archive)) if read else 0
        except (django.db.Error, DatabaseError):  # while the server restarts
            django.db.connections.close_all()
            return 0

    return once


def given_up(connection: Connection, age: float) -> None:
    """Roll back prepared transactions whose writer a server restart has ended."""
    for row in connection.all(_GIVEN_UP, {"age": age}):
        with suppress(DatabaseError):  # its writer was only slow
            connection.run(f"rollback prepared '{row.gid}'")


def told(dsn: str, folder: Path, drivers: Drivers) -> dict[str, Any]:
    """Compare what was committed with the manifest's files and the figures."""
    with postgresql().connect(dsn, for_handlers=True) as connection:
        ledger = {
            "batches": "select count(*) from pgqueue_console.pgqueue_historybatch where state = 'done'",
            "attempts": "select sum(attempt) from pgqueue_console.pgqueue_historybatch",
            "compacted": "select count(*) from pgqueue_console.pgqueue_historycompaction where state = 'done'",
        }
        figures = compared(connection)
        return {
            **circumstances(),
            **{name: drivers.done[name] for name in ("seconds", "killed", "ended", "failed", "restarts", "pruned")},
            "killed at a point": sum(drivers.killed_at.values()),
            "points": len(drivers.killed_at),
            **{name: connection.value(query) for name, query in ledger.items()},
            **in_files(connection, folder),
            **{name: each.rows for name, each in figures.items()},
            **{f"wrong {name}": len(each.wrong) for name, each in figures.items()},
        }


def in_files(connection: Connection, folder: Path) -> dict[str, int]:
    """Count committed rows that history lacks or has twice, and rows that were never committed."""
    import pyarrow.dataset

    committed = {row.seq for row in connection.all("select seq from committed")}
    paths = [
        row.path
        for row in connection.all("select path from pgqueue_console.pgqueue_datafile where dataset = 'history'")
    ]
    history = pyarrow.dataset.dataset([str(folder / path) for path in paths])
    found = Counter(history.to_table(["seq"])["seq"].to_pylist())
    return {
        "committed": len(committed),
        "lost": len(committed - set(found)),
        "twice": found.total() - len(found),
        "never committed": len(set(found) - committed),
    }


def main() -> None:
    with temporary() as folder:
        folder.chmod(0o755)
        with world(folder) as (server, environ):
            os.environ.update(environ)
            import django

            django.setup()
            drivers = Drivers(environ)
            try:
                torture(server, drivers, pruner())
            finally:
                drivers.close()
            with postgresql().connect(server.dsn(), for_handlers=True) as connection:
                given_up(connection, 0)
            finish("history", "run", environ=environ)
            publish(told(server.dsn(), Path(environ["PGQUEUE_HISTORY_DIR"]), drivers))


def publish(outcome: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "history_chaos.json").write_text(json.dumps(outcome, indent=1) + "\n")
    for name, figure in outcome.items():
        print(f"{name:18} {figure:>10}")
    if any(outcome[name] for name in outcome if name in NEVER or name.startswith("wrong")):
        print("BROKEN")
        raise SystemExit(1)


if __name__ == "__main__":
    main()

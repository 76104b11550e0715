"""Twelve writers, two drivers that race, kill -9 at random, an archive that is pruned, a server that is restarted.

``make bench-pipeline-chaos``: ``SECONDS`` in the environment makes it shorter. bench/results/history_chaos.json holds
what is printed; it ends with 1 where a committed row is not in history exactly once.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.console import wait_until
from bench.folder import temporary
from bench.table import RESULTS
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests.pipeline.writers import Writer

SECONDS = float(os.environ.get("SECONDS", 300))
WRITERS, DRIVERS, RESTARTS = 12, 2, 3
LIVES = 10.0, 60.0  # seconds after which a driver is killed, if it has not ended by then
_ROOT = Path(__file__).resolve().parent.parent
_LISTED = """
create table committed (seq bigint);
create function list() returns trigger language plpgsql as
    'begin insert into committed values (new.seq); return new; end';
create trigger listed after insert on messages.message_archive for each row execute function list()
"""


class Stubborn(Writer):
    """Begins anew when the server comes back."""

    def run(self) -> None:
        while self._goes_on(0):
            with suppress(DatabaseError):
                super().run()
            time.sleep(0.2)


class Drivers:
    """Each lives until it has read all that is there, or is killed; then another takes its place."""

    def __init__(self, environ: dict[str, str]):
        self._environ, self._random = environ, random.Random(1)
        self._alive: dict[subprocess.Popen[bytes], float] = {}
        self.done: Counter[str] = Counter()

    def look(self) -> None:
        for driver, until in list(self._alive.items()):
            if driver.poll() is not None:
                self.done["ended" if driver.returncode == 0 else "failed"] += 1
                del self._alive[driver]
            elif time.monotonic() > until:
                self._kill(driver)
        while len(self._alive) < DRIVERS:
            self._alive[run("pipeline", "run", environ=self._environ)] = time.monotonic() + self._random.uniform(*LIVES)

    def _kill(self, driver: "subprocess.Popen[bytes]") -> None:
        driver.kill()
        driver.wait()
        self.done["killed"] += 1
        del self._alive[driver]

    def close(self) -> None:
        for driver in list(self._alive):
            self._kill(driver)


def run(*arguments: str, environ: dict[str, str]) -> "subprocess.Popen[bytes]":
    log = (Path(environ["PGQUEUE_VAR"]) / "drivers.log").open("ab")
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.Popen(command, cwd=_ROOT, env=environ, stdout=log, stderr=log, start_new_session=True)


def finish(*arguments: str, environ: dict[str, str]) -> None:
    if run(*arguments, environ=environ).wait(900):
        raise SystemExit(f"manage.py {' '.join(arguments)} failed: see {environ['PGQUEUE_VAR']}/drivers.log")


@contextmanager
def world(folder: Path) -> Iterator[tuple[PostgreSQL, dict[str, str]]]:
    """A server with the console's tables and the engine's, and what programs must know to work on it."""
    server = PostgreSQL(folder / "postgresql")
    server.start()
    environ = {**os.environ, "DATABASE_URL": server.dsn(), "QUEUES_URL": server.dsn(), "SPARK_MASTER": "local[2,4]"}
    environ |= {"HISTORY_DIR": str(folder / "history"), "PGQUEUE_VAR": str(folder), "ARCHIVE_DAYS": "1"}
    environ["DJANGO_SETTINGS_MODULE"] = "pgqueue_admin.config.worker_settings"
    try:
        finish("migrate", environ=environ)
        finish("engine_schema", environ=environ)
        with postgresql().connect(server.dsn()) as connection:
            connection.run(_LISTED)
        yield server, environ
    finally:
        server.stop()


def torture(server: PostgreSQL, drivers: Drivers, prune: Callable[[], int]) -> Counter[str]:
    end = time.monotonic() + SECONDS
    writers = [Stubborn(server.dsn(), number, lambda _: time.monotonic() < end) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    restarts = [end - SECONDS * share / (RESTARTS + 1) for share in range(1, RESTARTS + 1)]
    while time.monotonic() < end:
        drivers.look()
        if restarts and time.monotonic() > restarts[-1]:
            restarts.pop()
            restart(server)
            drivers.done["restarts"] += 1
        drivers.done["pruned"] += prune()
        time.sleep(0.5)
    for writer in writers:
        writer.join()
    return drivers.done


def restart(server: PostgreSQL) -> None:
    assert server.pid
    os.kill(server.pid, signal.SIGQUIT)  # immediate: nobody is waited for, nothing is flushed
    wait_until(lambda: not server.running)
    server.start()


def pruner() -> Callable[[], int]:
    """All that history has read, however young: a row that goes too early is lost."""
    import django.db

    from pgqueue_admin.archive.pruning import as_of, prune
    from pgqueue_admin.pipeline import how_far
    from pgqueue_admin.records import clock

    def once() -> int:
        try:
            with postgresql().connect(os.environ["DATABASE_URL"]) as connection:
                (now,) = connection.all(postgresql().pipeline.instant())
                read = how_far.of_archive(now.cluster, now.archive).snapshot
                return prune(connection, clock.now(), read, as_of(now.cluster, now.archive)) if read else 0
        except (django.db.Error, DatabaseError):  # while the server restarts
            django.db.connections.close_all()
            return 0

    return once


def told(dsn: str, folder: Path, done: Counter[str]) -> dict[str, Any]:
    """What was committed, against what the manifest's files and the rollups say."""
    import pyarrow.dataset

    with postgresql().connect(dsn) as connection:
        committed = {row.seq for row in connection.all("select seq from committed")}
        paths = [row.path for row in connection.all("select path from pgqueue_historyfile where dataset = 'history'")]
        counted = "select coalesce(sum(messages), 0)::int8 from pgqueue_rollup where grain = 'day'"
        history = pyarrow.dataset.dataset([str(folder / path) for path in paths])
        found = Counter(history.to_table(["seq"])["seq"].to_pylist())
        return {
            "seconds": SECONDS,
            **{name: done[name] for name in ("killed", "ended", "failed", "restarts", "pruned")},
            "batches": connection.value("select count(*) from pgqueue_historybatch where state = 'done'"),
            "attempts": connection.value("select sum(attempt) from pgqueue_historybatch"),
            "compacted": connection.value("select count(*) from pgqueue_historycompaction where state = 'done'"),
            "committed": len(committed),
            "lost": len(committed - set(found)),
            "twice": found.total() - len(found),
            "never committed": len(set(found) - committed),
            "rollups": connection.value(counted),
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
                done = torture(server, drivers, pruner())
            finally:
                drivers.close()
            with postgresql().connect(server.dsn()) as connection:
                for row in connection.all("select gid from pg_prepared_xacts"):
                    connection.run(f"rollback prepared '{row.gid}'")
            finish("pipeline", "run", environ=environ)
            publish(told(server.dsn(), Path(environ["HISTORY_DIR"]), done))


def publish(outcome: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "history_chaos.json").write_text(json.dumps(outcome, indent=1) + "\n")
    for name, figure in outcome.items():
        print(f"{name:16} {figure:>10}")
    if outcome["lost"] or outcome["twice"] or outcome["never committed"] or outcome["rollups"] != outcome["committed"]:
        print("BROKEN")
        raise SystemExit(1)


if __name__ == "__main__":
    main()

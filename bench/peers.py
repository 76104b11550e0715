"""Jobs per second of other queues, this engine and this lease queue in one run, like with like; ``make bench-peers``.

Optional: installs bench/requirements.txt and bench/package.json into a folder of its own. ``ROUNDS`` and ``JOBS`` in
the environment make it shorter, ``PEERS`` selects some of them.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.folder import temporary
from bench.table import RESULTS
from pgqueue_admin.archive import schema
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.embedded.valkey import Valkey
from pgqueue_admin.transport import Endpoint

HERE = Path(__file__).parent
ROOT = HERE.parent
HOME = Path(os.environ.get("PGQUEUE_STATE_DIR", ROOT / "var")).resolve() / "bench-peers"
ROUNDS = int(os.environ.get("ROUNDS", 3))
JOBS = int(os.environ.get("JOBS", 5_000))
ONE, BATCH = "one by one", "batches"
PEERS = {
    "pgqueue": ("this engine", ONE),
    "pgqueue_batch": ("this engine, 100 a transaction", BATCH),
    "lease": ("this lease queue, worker", ONE),
    "lease_client": ("this lease queue, claim and finish", ONE),
    "lease_batch": ("this lease queue, batches of 100", BATCH),
    "procrastinate": ("procrastinate", ONE),
    "pgqueuer": ("pgqueuer", ONE),
    "pgqueuer_batch": ("pgqueuer, batches of 100", BATCH),
    "pgmq": ("pgmq", ONE),
    "pgmq_batch": ("pgmq, batches of 100", BATCH),
    "pgmq_archive": ("pgmq, archived", ONE),
    "pgmq_archive_batch": ("pgmq, archived, batches of 100", BATCH),
    "celery": ("Celery on Redis (Valkey)", ONE),
    "dramatiq_redis": ("dramatiq on Redis (Valkey)", ONE),
    "dramatiq_pg": ("dramatiq-pg", ONE),
    "graphile_worker": ("graphile-worker", ONE),
    "graphile_worker_batch": ("graphile-worker, 100 fetched ahead", BATCH),
    "pg_boss": ("pg-boss, fetch and complete", ONE),
    "pg_boss_batch": ("pg-boss, batches of 100", BATCH),
}
_FILL = """
insert into "Engine" (id, headers, body)
select gen_random_uuid(), '{{"NServiceBus.EnclosedMessageTypes":"Shop.Ping"}}',
  convert_to('{{"n":' || n || '}}', 'UTF8')
from generate_series(1, {jobs}) n
"""
_FILL_LEASE = """
insert into messages.message (message) select jsonb_build_object('n', n) from generate_series(1, {jobs}) n
"""
# what each runs of bench.engine_side or bench.lease_side; the lease queue archives what it ends
ENGINE = {"pgqueue": "receive", "pgqueue_batch": "drain_batch"}
LEASE = {"lease": ("worker", 1), "lease_client": ("drain", 1), "lease_batch": ("drain", 100)}
AT_ONCE = "8"
FROM_NPM = {"graphile_worker", "graphile_worker_batch", "pg_boss", "pg_boss_batch"}


def main() -> None:
    chosen = os.environ.get("PEERS", ",".join(PEERS)).split(",")
    install(with_npm=bool(FROM_NPM & {*chosen}))
    found: dict[str, list[float]] = {name: [] for name in chosen}
    with temporary() as folder:
        server, redis = PostgreSQL(folder / "postgresql"), Valkey(folder / "valkey")
        server.start()
        redis.start()
        try:
            for _ in range(ROUNDS):
                for each in chosen:
                    found[each] += measured(each, server, redis.url)
        finally:
            redis.stop()
            server.stop()
    publish(found)


def install(with_npm: bool) -> None:
    if not (HOME / "bin" / "python").exists():
        venv.create(HOME, with_pip=True)
    pip = [str(HOME / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", str(HERE / "requirements.txt")], check=True)
    if with_npm and shutil.which("npm"):
        shutil.copy(HERE / "package.json", HOME)
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=HOME, check=True)


def measured(name: str, server: PostgreSQL, redis: str) -> list[float]:
    """One figure, or none if the peer does not run here: the others still count."""
    with database(server) as dsn:
        done = subprocess.run(command(name, dsn, redis), cwd=ROOT, capture_output=True, text=True, timeout=600)
        try:
            return [float(done.stdout.split()[-1])]
        except (IndexError, ValueError):
            print(f"{name} did not run: {done.stderr.strip()[-400:] or done.stdout[-400:]}", file=sys.stderr)
            return []


def command(name: str, dsn: str, redis: str) -> list[str]:
    if name in FROM_NPM:
        return ["node", str(HERE / "peer_side.mjs"), name, dsn, str(JOBS), str(HOME)]
    if name in ENGINE:
        return engine(name, dsn)
    if name in LEASE:
        return lease(name, dsn)
    return [str(HOME / "bin" / "python"), str(HERE / "peer_side.py"), name, dsn, redis, str(JOBS)]


def engine(name: str, dsn: str) -> list[str]:
    Endpoint("Engine", dsn).create_queues()
    with postgresql().connect(dsn, for_handlers=True) as connection:
        connection.run(_FILL.format(jobs=JOBS))
    return [sys.executable, "-m", "bench.engine_side", dsn, ENGINE[name], AT_ONCE, str(JOBS)]


def lease(name: str, dsn: str) -> list[str]:
    with postgresql().connect(dsn, for_handlers=True) as connection:
        schema.install(connection)
        connection.run(_FILL_LEASE.format(jobs=JOBS))
    what, size = LEASE[name]
    return [sys.executable, "-m", "bench.lease_side", dsn, what, AT_ONCE, str(JOBS), str(size)]


@contextmanager
def database(server: PostgreSQL) -> Iterator[str]:
    """A new database for each measurement."""
    with postgresql().connect(server.dsn(), for_handlers=True) as admin:
        admin.run("create database peer")
        try:
            yield server.dsn("peer")
        finally:
            admin.run("drop database peer with (force)")


def publish(found: dict[str, list[float]]) -> None:
    """Fastest first, within each kind."""
    rows = [(statistics.median(rates), *PEERS[name], rates) for name, rates in found.items() if rates]
    rows.sort(key=lambda each: (each[2], -each[0]))
    RESULTS.mkdir(exist_ok=True)
    kept = [{"name": name, "kind": kind, "per_second": round(rate), "rounds": all_} for rate, name, kind, all_ in rows]
    (RESULTS / "peers.json").write_text(json.dumps(kept, indent=1) + "\n")
    for rate, name, kind, _ in rows:
        print(f"{kind:12} {name:32} {round(rate):>8} jobs/s")


if __name__ == "__main__":
    main()

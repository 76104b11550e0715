"""One peer, in its own process: a handler that does nothing takes jobs from a filled queue; prints jobs/s.

Measured from the first job handled to the last, so start-up does not count. Runs in the venv that bench.peers makes.
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

AT_ONCE = 8


class Count:
    """Ends the process when all jobs are handled: some workers have no other end."""

    def __init__(self, total: int):
        self._total = total
        self._lock = threading.Lock()
        self._seen = 0
        self._first = 0.0

    def __call__(self, jobs: int = 1) -> None:
        with self._lock:
            if not self._seen:
                self._first, self._total = time.monotonic(), self._total - jobs
            else:
                self._total -= jobs
            self._seen += jobs
            if self._total <= 0:
                rate = (self._seen - jobs) / (time.monotonic() - self._first)
                os.write(1, f"{rate}\n".encode())  # Celery replaces sys.stdout
                os._exit(0)


def procrastinate(dsn: str, redis: str, jobs: int, count: Count) -> None:
    import procrastinate as p

    app = p.App(connector=p.PsycopgConnector(conninfo=dsn))

    @app.task(name="ping")
    async def ping(n: int) -> None:
        count()

    async def run() -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            await ping.batch_defer_async(*[{"n": n} for n in range(jobs)])
            await app.run_worker_async(concurrency=AT_ONCE, install_signal_handlers=False)

    asyncio.run(run())


def pgqueuer(dsn: str, redis: str, jobs: int, count: Count, batch: int = 1) -> None:
    import asyncpg
    from pgqueuer import PgQueuer
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    async def run() -> None:
        driver = AsyncpgDriver(await asyncpg.connect(dsn))
        queries = Queries(driver)
        await queries.install()
        await queries.enqueue(["ping"] * jobs, [b"{}"] * jobs, [0] * jobs)
        worker = PgQueuer(driver)

        @worker.entrypoint("ping")
        async def ping(job: Any) -> None:
            count()

        await worker.run(batch_size=batch)

    asyncio.run(run())


def pgqueuer_batch(dsn: str, redis: str, jobs: int, count: Count) -> None:
    pgqueuer(dsn, redis, jobs, count, batch=100)


def pgmq(dsn: str, redis: str, jobs: int, count: Count, batch: int = 1, ends: str = "delete") -> None:
    """pgmq's extension is plain SQL, which its client ships. A worker reads, then deletes or archives."""
    import psycopg
    from pgmq.install import install_pgmq_from_sql

    install_pgmq_from_sql(dsn=dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select pgmq.create('ping')")
        made = "select array_agg(jsonb_build_object('n', n)) from generate_series(1, %s) n"
        connection.execute(f"select pgmq.send_batch('ping', ({made}))", [jobs])

    def work() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while True:
                read = connection.execute("select msg_id from pgmq.read('ping', 30, %s)", [batch]).fetchall()
                ids = [each[0] for each in read]
                if ids:
                    connection.execute(f"select pgmq.{ends}('ping', %s::bigint[])", [ids])
                    count(len(ids))

    in_threads(work)


def pgmq_batch(dsn: str, redis: str, jobs: int, count: Count) -> None:
    pgmq(dsn, redis, jobs, count, batch=100)


def pgmq_archive(dsn: str, redis: str, jobs: int, count: Count) -> None:
    """Like the lease queue, which archives every message."""
    pgmq(dsn, redis, jobs, count, ends="archive")


def pgmq_archive_batch(dsn: str, redis: str, jobs: int, count: Count) -> None:
    pgmq(dsn, redis, jobs, count, batch=100, ends="archive")


def celery(dsn: str, redis: str, jobs: int, count: Count) -> None:
    from celery import Celery

    app = Celery(broker=redis)

    @app.task(name="ping", ignore_result=True)
    def ping(n: int) -> None:
        count()

    for n in range(jobs):
        ping.delay(n)
    quiet = ["--loglevel=ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    app.worker_main(["worker", "-P", "threads", "-c", str(AT_ONCE), *quiet])


def dramatiq_redis(dsn: str, redis: str, jobs: int, count: Count) -> None:
    from dramatiq.brokers.redis import RedisBroker

    dramatiq(RedisBroker(url=redis), jobs, count)


def dramatiq_pg(dsn: str, redis: str, jobs: int, count: Count) -> None:
    import psycopg
    from dramatiq_pg import PostgresBroker
    from dramatiq_pg.schema import generate_init_sql

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(generate_init_sql())
    dramatiq(PostgresBroker(url=dsn, results=False), jobs, count)


def dramatiq(broker: Any, jobs: int, count: Count) -> None:
    import dramatiq as d

    d.set_broker(broker)

    @d.actor(queue_name="default")
    def ping(n: int) -> None:
        count()

    for n in range(jobs):
        ping.send(n)
    worker = d.Worker(broker, worker_threads=AT_ONCE)
    worker.start()
    threading.Event().wait()


def in_threads(work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work, daemon=True) for _ in range(AT_ONCE)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


PEERS = {
    each.__name__: each
    for each in (
        procrastinate,
        pgqueuer,
        pgqueuer_batch,
        pgmq,
        pgmq_batch,
        pgmq_archive,
        pgmq_archive_batch,
        celery,
        dramatiq_redis,
        dramatiq_pg,
    )
}

if __name__ == "__main__":
    name, dsn, redis, jobs = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    PEERS[name](dsn, redis, jobs, Count(jobs))

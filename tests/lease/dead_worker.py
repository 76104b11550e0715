"""A worker for dead messages that tests kill: dead_worker.py DSN holds|works LOCK_SECONDS. It records what it got."""

import logging
import sys

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease import DeadMessage, LeaseHandlers, LeaseSettings, LeaseWorker

handlers = LeaseHandlers()
dsn, does, lock = sys.argv[1:]


@handlers.on_dead("render")
def tell(dead: DeadMessage) -> None:
    print(dead.archive_id, flush=True)
    if does == "holds":
        sys.stdin.readline()
    with postgresql().connect(dsn) as session:
        session.run("insert into public.told (archive_id, given) values (%s, %s)", [dead.archive_id, dead.given])


logging.basicConfig(level=logging.WARNING)
settings = LeaseSettings(lock_seconds=float(lock), retry_after=(0.0,) * 50, look_every=0.5)
worker = LeaseWorker("mourner", dsn, handlers, settings=settings)
worker.run()

"""A worker process that is killed: worker_process.py DSN NAME holds|works LOCK_SECONDS."""

import logging
import sys
import threading
from typing import Any

from pgqueue_admin.lease import LeasedMessage, LeaseHandlers, LeaseSettings, LeaseWorker

WORK_SECONDS = 0.005  # of each message, so that kills fall into handlers and not only between them
handlers = LeaseHandlers()
dsn, name, does, lock = sys.argv[1:]
settings = LeaseSettings(
    lock_seconds=float(lock), concurrency=4, retry_after=(0.0,) * 50, look_every=0.5, on_lock_expired="release"
)


@handlers.handle()
def handle(message: Any, lease: LeasedMessage) -> Any:
    print(lease.id, flush=True)
    if does == "holds":
        sys.stdin.readline()
    elif message["n"] % 10 == 3 and lease.attempts == 1:
        raise ValueError("once")
    threading.Event().wait(WORK_SECONDS)
    return message


logging.basicConfig(level=logging.WARNING)
if does == "holds":
    settings = LeaseSettings(lock_seconds=float(lock), concurrency=1, look_every=3600)
LeaseWorker(name, dsn, handlers, settings=settings).run()

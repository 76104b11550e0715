"""A worker that kills itself at one place: dying_worker.py DSN WHERE. It records each call of its handler."""

import logging
import sys
import threading
from typing import Any

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease import LeasedMessage, LeaseHandlers, LeaseSettings, LeaseWorker
from pgqueue_admin.lease.lease_processor import LeaseProcessor
from pgqueue_admin.lease.queue import Leases
from tests.kill_points import dies

MESSAGES = 10
FAILS, IS_SLOW = {3, 8}, 2  # on the first attempt; longer than half of its lock
SETTINGS = LeaseSettings(
    lock_seconds=0.5, concurrency=2, retry_after=(0.0,) * 50, look_every=0.2, on_lock_expired="release"
)

# Places where a process may die: class, method, before or after it, number of the call.
PLACES: dict[str, tuple[type, str, bool, int]] = {
    "before a claim": (Leases, "claim", True, 2),
    "between claim and handler": (Leases, "claim", False, 2),
    "between handler and finish": (LeaseProcessor, "_end", True, 3),
    "between finish and whatever follows": (Leases, "finish_many", False, 3),
    "before a renewal": (Leases, "renew_many", True, 1),
    "behind a renewal": (Leases, "renew_many", False, 1),
    "before a release": (Leases, "release", True, 1),
    "behind a release": (Leases, "release", False, 1),
}


def worker(dsn: str) -> LeaseWorker:
    handlers = LeaseHandlers()

    @handlers.handle()
    def handle(message: Any, lease: LeasedMessage) -> None:
        with postgresql().connect(dsn) as session:
            session.run("insert into public.handled values (%s, %s)", [lease.id, lease.attempts])
        threading.Event().wait(0.4 if message["n"] == IS_SLOW else 0)
        if message["n"] in FAILS and lease.attempts == 1:
            raise ValueError("once")

    return LeaseWorker("thumbs", dsn, handlers, settings=SETTINGS)


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    dies(*PLACES[sys.argv[2]])
    worker(sys.argv[1]).run()

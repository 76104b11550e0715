"""A worker process that tests kill: worker_process.py DSN NAME holds|works LOCK_SECONDS. Messages say how they end."""

import logging
import sys
import threading
from typing import Any

from pgqueue_admin.lease import LeasedMessage, LeaseHandlers, LeaseSettings, LeaseWorker, Rejected

WORK_SECONDS = 0.005  # per message, so that kills hit handlers too
RETRIES = 8
SCHEMA = {"type": "object", "properties": {"ends": {"enum": ["success", "failed"]}}}


def main(dsn: str, name: str, does: str, lock: str) -> None:
    logging.basicConfig(level=logging.CRITICAL)
    settings = LeaseSettings(
        lock_seconds=float(lock),
        concurrency=4,
        retry_after=(0.0,) * RETRIES,
        look_every=0.5,
        on_lock_expired="release",
    )
    if does == "holds":
        settings = LeaseSettings(lock_seconds=float(lock), concurrency=1, look_every=3600)
    LeaseWorker(name, dsn, handlers(does), settings=settings).run()


def handlers(does: str) -> LeaseHandlers:
    handlers = LeaseHandlers()

    @handlers.handle("render", schema=SCHEMA)
    @handlers.handle()
    def handle(message: Any, lease: LeasedMessage) -> Any:
        print(lease.id, flush=True)
        if does == "holds":
            sys.stdin.readline()
        elif message["n"] % 10 == 3 and lease.attempts == 1:
            raise ValueError("once")
        threading.Event().wait(WORK_SECONDS)
        if message.get("ends") == "failed":
            raise ValueError("each time")
        return message

    @handlers.handle("mail")
    def mail(message: Any, lease: LeasedMessage) -> Any:
        if message["ends"] == "rejected":
            raise Rejected("no such address")
        return handle(message, lease)

    return handlers


if __name__ == "__main__":
    main(*sys.argv[1:])

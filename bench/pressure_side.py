"""Readers of one queue, each of which puts back what it takes. Answers each input line with the number handled.

pressure_side.py DSN KIND READERS
"""

import itertools
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.osproc import gc_freeze
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers

PING = "Shop.Ping"
Count = Callable[[], int]


def lease(dsn: str, readers: int) -> Count:
    queue, handled = LeaseQueue(dsn), itertools.count(1)
    newest = [0]

    def work() -> None:
        while True:
            with suppress(DatabaseError):
                for each in queue.claim(1, lock_for=60):
                    queue.finish(each, "success")
                    queue.publish({"kind": "render", "n": 1})
                    newest[0] = next(handled)

    for _ in range(readers):
        threading.Thread(target=work, daemon=True).start()
    return lambda: newest[0]


def transport(dsn: str, readers: int) -> Count:
    handlers, handled, newest = Handlers(), itertools.count(1), [0]

    @handlers.handle(PING)
    def ping(message: Any, context: Any) -> None:
        context.send("Engine", message, type=PING)
        newest[0] = next(handled)

    settings = EndpointSettings(concurrency=readers, on_exhausted="error_queue")
    Endpoint("Engine", dsn, settings=settings, handlers=handlers).start()
    return lambda: newest[0]


if __name__ == "__main__":
    kind, dsn, readers = {"lease": lease, "transport": transport}[sys.argv[2]], sys.argv[1], int(sys.argv[3])
    count = kind(dsn, readers)
    gc_freeze.settle()
    for _ in sys.stdin:
        print(count(), flush=True)

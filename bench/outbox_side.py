"""An endpoint with or without an outbox, in its own process: prints messages handled per second."""

import itertools
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

from bench.engine_side import PING, SETTINGS
from pgqueue_admin.osproc import gc_freeze
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.transport import Endpoint, Handlers

THREADS = 8
_CHARGE = "insert into public.charges (number) values (%(number)s)"
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "optimistic": {"transaction_mode": "receive_only", "outbox": Outbox()},
    "optimistic_kept": {"transaction_mode": "receive_only", "outbox": Outbox(clean_every=None)},
    "optimistic_cleaned": {
        "transaction_mode": "receive_only",
        "outbox": Outbox(clean_every=timedelta(milliseconds=50)),
    },
    "pessimistic": {"transaction_mode": "receive_only", "outbox": Outbox(concurrency="pessimistic")},
}


def receive(dsn: str, what: str, messages: int) -> float:
    """Measured from the first tenth to the last message."""
    kind, is_empty = what.removesuffix("_empty"), what.endswith("_empty")
    handlers, done, handled = Handlers(), threading.Event(), itertools.count(1)
    opened, begun = messages // 10, list[float]()

    @handlers.handle(PING)
    def charge(body: Any, context: Any) -> None:
        if not is_empty:
            context.connection.run(_CHARGE, {"number": 1})
            context.send("Onward", body, type=PING)
        number = next(handled)
        if number == opened:
            begun.append(time.monotonic())
        if number == messages:
            done.set()

    settings = replace(SETTINGS, concurrency=THREADS, **KINDS[kind])
    endpoint = Endpoint("Engine", dsn, settings=settings, handlers=handlers)
    gc_freeze.settle()
    endpoint.start()
    if not done.wait(3600):
        raise SystemExit("not all messages were handled within an hour")
    took = time.monotonic() - begun[0]
    endpoint.stop()
    return (messages - opened) / took


if __name__ == "__main__":
    print(receive(sys.argv[1], sys.argv[2], int(sys.argv[3])))

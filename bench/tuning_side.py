"""An endpoint process for bench.tuning: drains a queue when stdin says so, or measures how long messages wait."""

import random
import statistics
import sys
import threading
import time
from typing import Any

from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers

PING = "Shop.Ping"


def work_off(dsn: str, concurrency: int, messages: int, batch: int, seconds: float) -> None:
    handlers = Handlers()

    @handlers.handle(PING)
    def ping(body: Any, context: Any) -> None:
        if seconds:
            time.sleep(seconds)

    settings = EndpointSettings(on_exhausted="error_queue", concurrency=concurrency, batch_size=batch)
    endpoint = Endpoint("Engine", dsn, settings=settings, handlers=handlers)
    endpoint.pause()
    endpoint.start()
    print("ready", flush=True)
    sys.stdin.readline()
    endpoint.resume()
    sys.stdin.readline()
    endpoint.stop()


def waits(dsn: str, concurrency: int, messages: int, batch: int, delay: float) -> None:
    """Messages are sent at random moments without NOTIFY, as foreign endpoints send."""
    handlers, seen = Handlers(), threading.Semaphore(0)
    handlers.handle(PING)(lambda body, context: seen.release())
    settings = EndpointSettings(on_exhausted="error_queue", concurrency=concurrency, peek_delay=delay, notify=False)
    endpoint = Endpoint("Engine", dsn, settings=settings, handlers=handlers)
    endpoint.start()
    found = []
    for _ in range(messages):
        time.sleep(random.uniform(0, delay))
        endpoint.send("Engine", {}, type=PING)
        sent = time.monotonic()
        seen.acquire()
        found.append(time.monotonic() - sent)
    endpoint.stop()
    print(1000 * statistics.median(found))


if __name__ == "__main__":
    what, dsn, concurrency, messages, batch, seconds = sys.argv[2], *sys.argv[1:2], *sys.argv[3:]
    {"work_off": work_off, "waits": waits}[what](dsn, int(concurrency), int(messages), int(batch), float(seconds))

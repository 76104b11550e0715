"""The product's side of a lease queue measurement, in its own process: prints one number."""

import itertools
import sys
import threading
import time
from typing import Any

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease import LeasedMessage, LeaseHandlers, LeaseQueue, LeaseSettings, LeaseWorker
from pgqueue_admin.lease.endings import ending
from pgqueue_admin.osproc import gc_freeze

_BURST = "insert into messages.message (message) select jsonb_build_object('n', n) from generate_series(1, %s) n"


def client(dsn: str, threads: int, messages: int, size: int) -> float:
    queue, ready = LeaseQueue(dsn), threading.Barrier(threads + 1)

    def work() -> None:
        queue.outlook()  # opens its session
        ready.wait()
        while leases := queue.claim(size):
            queue.finish_many([ending(lease, "success", None) for lease in leases])

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for each in workers:
        each.start()
    ready.wait()
    started = time.monotonic()
    for each in workers:
        each.join()
    return messages / (time.monotonic() - started)


def drain(dsn: str, threads: int, messages: int, size: int) -> float:
    """Like ``client``, measured from the end of the first claim to the last, as other queues are."""
    queue, ended = LeaseQueue(dsn), list[tuple[float, int]]()

    def work() -> None:
        while leases := queue.claim(size):
            queue.finish_many([ending(lease, "success", None) for lease in leases])
            ended.append((time.monotonic(), len(leases)))

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    (first, number), (last, _) = min(ended), max(ended)
    return (messages - number) / (last - first)


def worker(dsn: str, threads: int, messages: int, size: int) -> float:
    """Measured from the first tenth to the last message."""
    handlers, done, handled, begun = LeaseHandlers(), threading.Event(), itertools.count(1), list[float]()

    @handlers.handle()
    def handle(message: Any, lease: LeasedMessage) -> None:
        number = next(handled)
        if number == messages // 10:
            begun.append(time.monotonic())
        if number == messages:
            done.set()

    running = LeaseWorker("bench", dsn, handlers, settings=LeaseSettings(concurrency=threads))
    gc_freeze.settle()
    running.start()
    if not done.wait(3600):
        raise SystemExit("not all messages were handled within an hour")
    took = time.monotonic() - begun[0]
    running.stop()
    return messages * 0.9 / took


def burst(dsn: str, threads: int, messages: int, size: int) -> float:
    """Milliseconds from the commit of ``messages`` inserts, each with its NOTIFY, to the first handler."""
    handlers, first, at = LeaseHandlers(), threading.Event(), list[float]()

    @handlers.handle()
    def handle(message: Any, lease: LeasedMessage) -> None:
        if not at:
            at.append(time.monotonic())
            first.set()

    running = _resting(dsn, handlers, threads)
    committed = _burst(dsn, messages)
    first.wait()
    running.stop()
    return 1000 * max(0.0, at[0] - committed)


def waking(dsn: str, threads: int, messages: int, size: int) -> float:
    """Claims per wake-up by the NOTIFY of such a burst, until all are handled."""
    handlers, handled, done = LeaseHandlers(), itertools.count(1), threading.Event()

    @handlers.handle()
    def handle(message: Any, lease: LeasedMessage) -> None:
        if next(handled) == messages:
            done.set()

    running = _resting(dsn, handlers, threads)
    _burst(dsn, messages)
    if not done.wait(3600):
        raise SystemExit("not all messages were handled within an hour")
    figures = running.claim_figures
    running.stop()
    return figures.claims / figures.wake_ups


def _resting(dsn: str, handlers: LeaseHandlers, threads: int) -> LeaseWorker:
    running = LeaseWorker("bench", dsn, handlers, settings=LeaseSettings(concurrency=threads))
    running.start()
    time.sleep(1)  # it has polled and is idle
    return running


def _burst(dsn: str, messages: int) -> float:
    """Insert the burst; return the time after its commit."""
    with postgresql().connect(dsn, for_handlers=True) as session:
        session.run(_BURST, [messages])
        return time.monotonic()


if __name__ == "__main__":
    measures = {each.__name__: each for each in (client, drain, worker, burst, waking)}
    dsn, what, *numbers = sys.argv[1:]
    print(measures[what](dsn, *map(int, numbers)))

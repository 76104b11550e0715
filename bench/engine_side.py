"""The engine's side of a measurement, in its own process: prints one number."""

import itertools
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pgqueue_admin.osproc import gc_freeze
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers

PING = "Shop.Ping"
WAKE_UPS = 50
IDLE_DELAY = 0.2
SETTINGS = EndpointSettings(on_exhausted="error_queue")


def send(dsn: str, threads: int, messages: int) -> float:
    """One endpoint, many threads: each has its own session, like the floor."""
    endpoint = Endpoint("Engine", dsn, settings=SETTINGS)
    ready = threading.Barrier(threads + 1)

    def work() -> None:
        endpoint.send("Engine", {"n": 0}, type=PING)  # opens its session
        ready.wait()
        for _ in range(messages // threads):
            endpoint.send("Engine", {"n": 1}, type=PING)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for each in workers:
        each.start()

    def all_of_them() -> None:
        ready.wait()
        for each in workers:
            each.join()

    took = timed(all_of_them)
    endpoint.stop()
    return messages / took


def batch(dsn: str, threads: int, messages: int) -> float:
    endpoint = Endpoint("Engine", dsn, settings=SETTINGS)
    endpoint.send("Engine", {"n": 0}, type=PING)  # opens its session

    def work() -> None:
        for _ in range(messages // 100):
            endpoint.send_many("Engine", ({"n": number} for number in range(100)), type=PING)

    took = timed(work)
    endpoint.stop()
    return messages / took


def drain_batch(dsn: str, threads: int, messages: int) -> float:
    return receive(dsn, threads, messages, batch_size=100)


def receive(dsn: str, threads: int, messages: int, onward: bool = False, **more: Any) -> float:
    """Measured from the first tenth to the last message: by then each slot has its session, as the floor's have."""
    handlers, done, handled = Handlers(), threading.Event(), itertools.count(1)
    opened, begun = messages // 10, list[float]()

    @handlers.handle(PING)
    def ping(body: Any, context: Any) -> None:
        if onward:
            context.send("Onward", body, type=PING)
        number = next(handled)  # atomic in the interpreter: a lock here would limit short batches
        if number == opened:
            begun.append(time.monotonic())
        if number == messages:
            done.set()

    endpoint = Endpoint("Engine", dsn, settings=replace(SETTINGS, concurrency=threads, **more), handlers=handlers)

    gc_freeze.settle()  # as worker children do
    endpoint.start()
    if not done.wait(3600):
        raise SystemExit("not all messages were handled within an hour")
    took = time.monotonic() - begun[0]
    endpoint.stop()
    return (messages - opened) / took


def receive_send(dsn: str, threads: int, messages: int) -> float:
    return receive(dsn, threads, messages, onward=True)


def receive_batch(dsn: str, threads: int, messages: int) -> float:
    return receive(dsn, threads, messages, batch_size=50)


def idle(dsn: str, threads: int, messages: int) -> float:
    """Stay idle for ``messages`` peek delays; the result is the server's log."""
    endpoint = Endpoint("Engine", dsn, settings=replace(SETTINGS, peek_delay=IDLE_DELAY, concurrency=threads))
    endpoint.start()
    time.sleep(messages * IDLE_DELAY)
    endpoint.stop()
    return 0


def wake_up(dsn: str, threads: int, messages: int) -> float:
    """The median from commit in one session to the handler in another, each time on an idle queue."""
    handlers, seen = Handlers(), threading.Semaphore(0)
    arrived: list[float] = []

    @handlers.handle(PING)
    def ping(body: Any, context: Any) -> None:
        arrived.append(time.monotonic())
        seen.release()

    receiver = Endpoint("Engine", dsn, settings=replace(SETTINGS, peek_delay=10), handlers=handlers)
    sender = Endpoint("Sender", dsn, settings=SETTINGS)
    receiver.start()
    waits = [one_wake_up(sender, seen, arrived) for _ in range(WAKE_UPS)]
    sender.stop()
    receiver.stop()
    return 1000 * statistics.median(waits)


def one_wake_up(sender: Endpoint, seen: threading.Semaphore, arrived: list[float]) -> float:
    time.sleep(0.05)  # until the receiver is idle again
    sender.send("Engine", {"n": 1}, type=PING)
    committed = time.monotonic()
    seen.acquire()
    return arrived[-1] - committed


def timed(work: Callable[[], Any]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


if __name__ == "__main__":
    known = (send, batch, receive, receive_send, receive_batch, drain_batch, idle, wake_up)
    measures = {each.__name__: each for each in known}
    print(measures[sys.argv[2]](sys.argv[1], int(sys.argv[3]), int(sys.argv[4])))

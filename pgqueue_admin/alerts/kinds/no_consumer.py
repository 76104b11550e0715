"""Messages wait and nothing receives them. For external queues this is an inference.

First step: Ours: start its endpoint, or see on Workers why no process starts. Others: check whether their service runs.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from pgqueue_admin.alerts.finding import CRITICAL, WARNING, Finding
from pgqueue_admin.alerts.kinds.kind import HOVERING, AlertKind, sees_queues
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.models import Endpoint, Process, Queue

QUIET_OURS = 30.0  # a restart takes a moment
QUIET_FOREIGN = 120.0  # only the lack of departures is visible


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for queue in look.read():
        if queue.kind in ("input", "lease") and queue.latest.ready:
            endpoint = look.ours.get((queue.schema, queue.table))
            quiet = _quiet_ours(look, endpoint) if endpoint else _quiet_foreign(look, queue)
            if quiet >= (QUIET_OURS if endpoint else QUIET_FOREIGN):
                yield _found(look, queue, endpoint, quiet)


def _quiet_ours(look: AlertSnapshot, endpoint: Endpoint) -> float:
    """Seconds since the last process ended or began to drain; 0 while paused."""
    received = [at for process in look.of(endpoint) if (at := _received_until(look, process, endpoint))]
    return 0.0 if endpoint.paused else (look.now - max([look.watching_since, *received])).total_seconds()


def _received_until(look: AlertSnapshot, process: Process, endpoint: Endpoint) -> datetime | None:
    """Now if it runs; None if it is silent. A draining process, for up to an hour, receives nothing new."""
    if not look.hears_of(process):
        return process.ended_at
    if process.state == Process.State.DRAINING and process.drain_until:
        return process.drain_until - timedelta(seconds=endpoint.drain_seconds)
    return look.now


def _quiet_foreign(look: AlertSnapshot, queue: Queue) -> float:
    """Seconds since the last departure, or since the oldest message arrived if that was later. 0 while a message is in
    flight, however long that takes: those behind it may arrive faster than they are processed.
    """
    if queue.latest.in_flight:
        return 0.0
    since = filter(None, (queue.latest.last_departure_at or queue.first_seen_at, queue.latest.oldest_at))
    return (look.now - max(since)).total_seconds()


def _is_silent(look: AlertSnapshot, process: Process) -> bool:
    return process.ended_at is None and not look.hears_of(process)


def _found(look: AlertSnapshot, queue: Queue, endpoint: Endpoint | None, quiet: float) -> Finding:
    address, ours = look.address(queue), endpoint is not None
    silent = endpoint is not None and any(_is_silent(look, process) for process in look.of(endpoint))
    stopped = endpoint is not None and not endpoint.desired_processes
    said = warnings.no_consumer(queue.latest.ready or 0, queue.latest.how, ours, quiet, silent, stopped)
    return Finding("no_consumer", address, said, CRITICAL if ours else WARNING, queue=address)


KIND = AlertKind("no_consumer", "no consumer", find, can_tell=sees_queues, by_samples=True, linger=HOVERING)

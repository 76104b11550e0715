"""A process of ours runs and reports, but receives nothing while messages wait and it has free slots.

First step: Restart the process on its endpoint's page and read its log.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from pgqueue_admin.alerts.finding import CRITICAL, Finding
from pgqueue_admin.alerts.kinds.kind import HOVERING, AlertKind, sees_queues
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.models import Endpoint, Process, Queue

DEAF = timedelta(seconds=60)  # twice a session's timeout: by then it receives again, or reports why not


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for queue in look.read():
        for process in deaf(look, queue):
            place = f"{process.host} pid {process.pid}"
            said = warnings.deaf(place, hears_until(process), queue.latest.ready or 0, queue.latest.how)
            yield Finding("deaf", process.endpoint, said, CRITICAL, cause=place, queue=look.address(queue))


def deaf(look: AlertSnapshot, queue: Queue) -> list[Process]:
    """Return the silent processes of the queue's endpoint. Messages that waited for less may just have arrived."""
    endpoint, oldest = look.ours.get((queue.schema, queue.table)), queue.latest.oldest_at
    if endpoint is None or endpoint.paused or not queue.latest.ready or not oldest or look.now - oldest < DEAF:
        return []
    return [process for process in look.of(endpoint) if _is_deaf(look, process, endpoint)]


def _is_deaf(look: AlertSnapshot, process: Process, endpoint: Endpoint) -> bool:
    """Whether it receives nothing. One whose slots are all busy is slow; new instructions restart the clock."""
    is_at_work = look.hears_of(process) and process.state == Process.State.RUNNING and process.busy < process.slots
    return is_at_work and look.now - max(hears_until(process), look.watching_since) >= DEAF


def hears_until(process: Process) -> datetime:
    """When it last received, or was last started, or got settings that end a pause."""
    return max(filter(None, (process.received_at, process.settings_at, process.started_at)))


KIND = AlertKind("deaf", "process receives nothing", find, can_tell=sees_queues, by_samples=True, linger=HOVERING)

"""A process of ours runs and reports, and receives nothing while messages wait and it has slots for them."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from pgqueue_admin.alerts.found import CRITICAL, Found
from pgqueue_admin.alerts.kinds.kind import HOVERING, Kind, sees_queues
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.records.models import Endpoint, Process, Queue
from pgqueue_admin.wording import warnings

DEAF = timedelta(seconds=60)  # twice what a session waits for an answer: by then it receives again, or says why not


def find(look: Look) -> Iterator[Found]:
    for queue in look.read():
        for process in deaf(look, queue):
            place = f"{process.host} pid {process.pid}"
            said = warnings.deaf(place, hears_until(process), queue.latest.ready or 0, queue.latest.how)
            yield Found("deaf", process.endpoint, said, CRITICAL, cause=place, queue=look.address(queue))


def deaf(look: Look, queue: Queue) -> list[Process]:
    """Those of the endpoint whose queue this is. What has waited for less may just have come."""
    endpoint, oldest = look.ours.get((queue.schema, queue.table)), queue.latest.oldest_at
    if endpoint is None or endpoint.paused or not queue.latest.ready or not oldest or look.now - oldest < DEAF:
        return []
    return [process for process in look.of(endpoint) if _is_deaf(look, process, endpoint)]


def _is_deaf(look: Look, process: Process, endpoint: Endpoint) -> bool:
    """One whose slots are all busy is slow; what it is told to do anew begins to count then."""
    is_at_work = look.hears_of(process) and process.state == Process.State.RUNNING and process.busy < process.slots
    return is_at_work and look.now - max(hears_until(process), look.watching_since) >= DEAF


def hears_until(process: Process) -> datetime:
    """When it last received, or was last set right: by a start, or by settings that end a pause."""
    return max(filter(None, (process.received_at, process.settings_at, process.started_at)))


KIND = Kind("deaf", "process receives nothing", find, can_tell=sees_queues, by_samples=True, linger=HOVERING)

"""More messages wait than the queue's target."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import Found
from pgqueue_admin.alerts.kinds.deaf import deaf
from pgqueue_admin.alerts.kinds.kind import HOVERING, Kind, sees_queues
from pgqueue_admin.alerts.kinds.off_target import past
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.wording import warnings


def find(look: Look) -> Iterator[Found]:
    for queue, verdict in past(look, "depth"):
        address = look.address(queue)
        waits, target, silent = int(verdict.value or 0), int(verdict.target or 0), len(deaf(look, queue))
        said = warnings.queue_depth(waits, queue.latest.how, target, silent)
        yield Found("queue_depth", address, said, verdict.state, queue=address)


KIND = Kind("queue_depth", "depth over target", find, can_tell=sees_queues, by_samples=True, linger=HOVERING)

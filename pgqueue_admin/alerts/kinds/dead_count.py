"""More dead messages than the queue's target, where they do not lie in the archive: in an error queue."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import Found
from pgqueue_admin.alerts.kinds.kind import HOVERING, Kind, sees_queues
from pgqueue_admin.alerts.kinds.off_target import past
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.wording import warnings


def find(look: Look) -> Iterator[Found]:
    archived = {group.queue for group in look.lying or []}  # of these dead_message tells, and by cause
    for queue, verdict in past(look, "dead"):
        address = look.address(queue)
        if address not in archived:
            how = queue.latest.how if queue.kind == "error" else "counted"  # those of an input queue lie in the archive
            said = warnings.dead_count(int(verdict.value or 0), int(verdict.target or 0), how)
            yield Found("dead_count", address, said, verdict.state, queue=address)


KIND = Kind("dead_count", "dead over target", find, can_tell=sees_queues, by_samples=True, linger=HOVERING)

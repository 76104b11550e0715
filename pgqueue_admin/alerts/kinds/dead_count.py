"""An error queue holds more dead messages than its target, and they are not in the archive.

First step: Look at its messages; switch on ingestion, so that they can be retried from the archive.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import HOVERING, AlertKind, sees_queues
from pgqueue_admin.alerts.kinds.target_exceeded import past
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings


def find(look: AlertSnapshot) -> Iterator[Finding]:
    """Judge error queues only. Dead messages of input queues are archived, where dead_message counts them at each pass:
    the newest sample may be older, and would warn of messages that somebody has just discarded.
    """
    archived = {group.queue for group in look.lying or []}  # dead_message warns of them, by cause
    for queue, verdict in past(look, "dead"):
        address = look.address(queue)
        if queue.kind == "error" and address not in archived:
            said = warnings.dead_count(int(verdict.value or 0), int(verdict.target or 0), queue.latest.how)
            yield Finding("dead_count", address, said, verdict.state, queue=address)


KIND = AlertKind("dead_count", "dead over target", find, can_tell=sees_queues, by_samples=True, linger=HOVERING)

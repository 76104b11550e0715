"""More messages wait than the queue's target.

First step: Look at its messages and receivers; a pile of one type has one cause.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.deaf import deaf
from pgqueue_admin.alerts.kinds.kind import HOVERING, AlertKind, sees_queues
from pgqueue_admin.alerts.kinds.target_exceeded import past
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for queue, verdict in past(look, "depth"):
        address = look.address(queue)
        waits, target, silent = int(verdict.value or 0), int(verdict.target or 0), len(deaf(look, queue))
        said = warnings.queue_depth(waits, queue.latest.how, target, silent)
        yield Finding("queue_depth", address, said, verdict.state, queue=address)


KIND = AlertKind("queue_depth", "depth over target", find, can_tell=sees_queues, by_samples=True, linger=HOVERING)

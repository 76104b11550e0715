"""A queue cannot be read although most others can: a right is missing, or somebody holds a lock on it.

First step: Read the database's words on the queue's page: 42501 needs a grant, 55P03 has a holder in pg_locks.
"""

from collections.abc import Iterator
from datetime import timedelta

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind, sees_queues
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.models import staleness


def find(look: AlertSnapshot) -> Iterator[Finding]:
    """Find queues unread for longer than a slow look while others were read. If most are unread, ``blind`` says so."""
    if look.sight.is_blind:
        return
    patience = timedelta(seconds=staleness.limit())
    for queue in look.sampled():
        latest = queue.latest
        if latest.error and look.newest_sample and look.newest_sample - latest.at > patience:
            address = look.address(queue)
            said = warnings.queue_unreadable(latest.error, latest.sqlstate)
            yield Finding("queue_unreadable", address, said, queue=address, since=latest.at)


KIND = AlertKind("queue_unreadable", "queue cannot be read", find, can_tell=sees_queues)

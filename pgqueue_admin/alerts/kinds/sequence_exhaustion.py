"""A queue's sequence nears its end, usually 2,147,483,647: beyond it every send fails.

First step: Widen the sequence and the seq column to bigint before the end is reached.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import CRITICAL, WARNING, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind, sees_queues
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings

WARN_AT, CRITICAL_AT = 0.85, 0.95


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for queue in look.read():
        last, end = queue.latest.sent_total or 0, queue.seq_end
        if end and last > end * WARN_AT:
            severity = CRITICAL if last > end * CRITICAL_AT else WARNING
            address = look.address(queue)
            yield Finding(
                "sequence_exhaustion", address, warnings.sequence_exhaustion(last, end), severity, queue=address
            )


KIND = AlertKind("sequence_exhaustion", "seq near its end", find, can_tell=sees_queues, by_samples=True)

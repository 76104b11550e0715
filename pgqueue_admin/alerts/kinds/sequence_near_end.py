"""A queue's sequence comes to its end, as a rule 2,147,483,647: past it every send fails."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import CRITICAL, WARNING, Found
from pgqueue_admin.alerts.kinds.kind import Kind, sees_queues
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.wording import warnings

WARN_AT, CRITICAL_AT = 0.85, 0.95


def find(look: Look) -> Iterator[Found]:
    for queue in look.read():
        last, end = queue.latest.sent_total or 0, queue.seq_end
        if end and last > end * WARN_AT:
            severity = CRITICAL if last > end * CRITICAL_AT else WARNING
            address = look.address(queue)
            yield Found("sequence_near_end", address, warnings.sequence_near_end(last, end), severity, queue=address)


KIND = Kind("sequence_near_end", "seq near its end", find, can_tell=sees_queues, by_samples=True)

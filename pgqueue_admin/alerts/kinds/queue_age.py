"""The oldest ready message waits longer than the queue's target.

First step: See on the queue's page whether more arrive than leave; then raise concurrency or start a process.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.deaf import deaf
from pgqueue_admin.alerts.kinds.kind import HOVERING, AlertKind, sees_queues
from pgqueue_admin.alerts.kinds.target_exceeded import not_known, past
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.formatting.age_explanation import AgeExplanation
from pgqueue_admin.models import Queue


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for queue, verdict in past(look, "age"):
        address, how, silent = look.address(queue), queue.latest.oldest_how, len(deaf(look, queue))
        said = warnings.queue_age(verdict.value or 0, verdict.target or 0, how, _pace(look, queue), silent)
        yield Finding("queue_age", address, said, verdict.state, queue=address)


def _pace(look: AlertSnapshot, queue: Queue) -> AgeExplanation:
    endpoint = look.ours.get((queue.schema, queue.table))
    at_work = [process for process in look.of(endpoint) if look.hears_of(process)] if endpoint else []
    busy, slots = sum(process.busy for process in at_work), sum(process.slots for process in at_work)
    return AgeExplanation(queue.latest.in_per_second, queue.latest.out_per_second, busy, slots)


def unknown(look: AlertSnapshot) -> set[str]:
    """Queues whose oldest ready message is beyond the cap, behind too many messages in flight or expired."""
    return {look.address(queue) for queue in not_known(look, "age")}


KIND = AlertKind(
    "queue_age", "oldest ready", find, can_tell=sees_queues, by_samples=True, unknown=unknown, linger=HOVERING
)

"""Queues past a target, by the same function as on every page: what is shown is what is judged."""

from collections.abc import Iterator

from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.models import Queue
from pgqueue_admin.monitor import targets
from pgqueue_admin.monitor.targets import TargetState, TargetVerdict


def past(look: AlertSnapshot, why: str) -> Iterator[tuple[Queue, TargetVerdict]]:
    return _judged(look, why, TargetState.CRITICAL)


def not_known(look: AlertSnapshot, why: str) -> Iterator[Queue]:
    """Queues neither past this target nor within it: unknown now."""
    return (queue for queue, _ in _judged(look, why, TargetState.WARNING))


def _judged(look: AlertSnapshot, why: str, state: TargetState) -> Iterator[tuple[Queue, TargetVerdict]]:
    for queue in look.read():
        for verdict in targets.each(queue, queue.latest, look.now, look.is_paused(queue)):
            if verdict.why == why and verdict.state is state:
                yield queue, verdict

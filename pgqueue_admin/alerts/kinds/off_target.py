"""Queues past a target, as monitor judges them for every page: what is shown is what is judged."""

from collections.abc import Iterator

from pgqueue_admin.alerts.look import Look
from pgqueue_admin.monitor import judge
from pgqueue_admin.monitor.judge import State, Verdict
from pgqueue_admin.records.models import Queue


def past(look: Look, why: str) -> Iterator[tuple[Queue, Verdict]]:
    return _judged(look, why, State.CRITICAL)


def not_known(look: Look, why: str) -> Iterator[Queue]:
    """Those that are neither past this target nor within it: nobody can tell now."""
    return (queue for queue, _ in _judged(look, why, State.WARNING))


def _judged(look: Look, why: str, state: State) -> Iterator[tuple[Queue, Verdict]]:
    for queue in look.read():
        for verdict in judge.each(queue, queue.latest, look.now, look.is_paused(queue)):
            if verdict.why == why and verdict.state is state:
                yield queue, verdict

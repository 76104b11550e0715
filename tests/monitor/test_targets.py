"""C2: targets are judged by one function, which also gives colour and order."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.monitor.targets import TargetState, against, default_targets

NOW = datetime(2026, 11, 20, 17, 35, tzinfo=UTC)


@dataclass
class Queue:
    target_age_seconds: int | None = None
    target_depth: int | None = None
    target_dead: int | None = None
    ready: int | None = None
    depth: int | None = None
    dead: int | None = None
    oldest_at: datetime | None = None
    error: str = ""

    def verdict(self) -> tuple[TargetState, str, float]:
        verdict = against(self, self, NOW)
        return verdict.state, verdict.why, verdict.ratio


def aged(seconds: float, **facts: Any) -> Queue:
    return Queue(target_age_seconds=60, ready=1, oldest_at=NOW - timedelta(seconds=seconds), **facts)


def test_defaults() -> None:
    assert default_targets(TableKind.INPUT) == {"target_age_seconds": 60, "target_depth": None, "target_dead": 0}
    assert default_targets("error") == {"target_age_seconds": None, "target_depth": None, "target_dead": 0}
    for kind in (TableKind.AUDIT, TableKind.UNKNOWN, TableKind.ARCHIVE, TableKind.DELAYED):
        assert set(default_targets(kind).values()) == {None}


@pytest.mark.parametrize(
    ("queue", "verdict"),
    [
        (Queue(), (TargetState.OK, "", 0.0)),
        (aged(60), (TargetState.OK, "", 1.0)),
        (aged(90), (TargetState.CRITICAL, "age", 1.5)),
        (Queue(target_age_seconds=60, ready=5), (TargetState.WARNING, "age", 0.0)),
        (Queue(target_age_seconds=60, ready=5, target_dead=0, dead=1), (TargetState.CRITICAL, "dead", 2.0)),
        (Queue(target_dead=0, ready=5), (TargetState.OK, "", 0.0)),
        (Queue(target_dead=0, dead=0), (TargetState.OK, "", 0.0)),
        (Queue(target_dead=0, dead=1), (TargetState.CRITICAL, "dead", 2.0)),
        (Queue(target_dead=0, dead=None), (TargetState.OK, "", 0.0)),
        (Queue(target_depth=100, depth=300), (TargetState.CRITICAL, "depth", 3.0)),
        (aged(90, target_depth=100, depth=300), (TargetState.CRITICAL, "depth", 3.0)),
        (Queue(error="The table is gone."), (TargetState.WARNING, "unreadable", 0.0)),
        (aged(90, error="The role may not."), (TargetState.WARNING, "unreadable", 0.0)),
        (Queue(target_dead=0, dead=1, error="The role may not."), (TargetState.WARNING, "unreadable", 0.0)),
    ],
)
def test_verdicts(queue: Queue, verdict: tuple[TargetState, str, float]) -> None:
    state, why, ratio = queue.verdict()
    assert (state, why if state is not TargetState.OK else "", ratio) == verdict


def test_nothing_ready_has_no_age() -> None:
    assert Queue(target_age_seconds=60, ready=0, oldest_at=NOW - timedelta(hours=1)).verdict()[0] is TargetState.OK


def test_worst_first() -> None:
    queues = [Queue(), aged(70), Queue(error="x"), aged(600), aged(30)]
    worst = sorted(queues, key=lambda queue: against(queue, queue, NOW).badness, reverse=True)
    assert worst == [queues[3], queues[1], queues[2], queues[4], queues[0]]

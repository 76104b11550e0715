"""C2: targets judge; one function colours and sorts."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.monitor.judge import State, against, default_targets
from pgqueue_admin.monitor.tables import Kind

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

    def verdict(self) -> tuple[State, str, float]:
        verdict = against(self, self, NOW)
        return verdict.state, verdict.why, verdict.ratio


def aged(seconds: float, **facts: Any) -> Queue:
    return Queue(target_age_seconds=60, ready=1, oldest_at=NOW - timedelta(seconds=seconds), **facts)


def test_defaults() -> None:
    assert default_targets(Kind.INPUT) == {"target_age_seconds": 60, "target_depth": None, "target_dead": 0}
    assert default_targets("error") == {"target_age_seconds": None, "target_depth": None, "target_dead": 0}
    for kind in (Kind.AUDIT, Kind.UNKNOWN, Kind.ARCHIVE, Kind.DELAYED):
        assert set(default_targets(kind).values()) == {None}


@pytest.mark.parametrize(
    ("queue", "verdict"),
    [
        (Queue(), (State.OK, "", 0.0)),
        (aged(60), (State.OK, "", 1.0)),
        (aged(90), (State.CRITICAL, "age", 1.5)),
        (Queue(target_age_seconds=60, ready=5), (State.WARNING, "age", 0.0)),
        (Queue(target_age_seconds=60, ready=5, target_dead=0, dead=1), (State.CRITICAL, "dead", 2.0)),
        (Queue(target_dead=0, ready=5), (State.OK, "", 0.0)),
        (Queue(target_dead=0, dead=0), (State.OK, "", 0.0)),
        (Queue(target_dead=0, dead=1), (State.CRITICAL, "dead", 2.0)),
        (Queue(target_dead=0, dead=None), (State.OK, "", 0.0)),
        (Queue(target_depth=100, depth=300), (State.CRITICAL, "depth", 3.0)),
        (aged(90, target_depth=100, depth=300), (State.CRITICAL, "depth", 3.0)),
        (Queue(error="The table is gone."), (State.WARNING, "unreadable", 0.0)),
        (aged(90, error="The role may not."), (State.WARNING, "unreadable", 0.0)),
        (Queue(target_dead=0, dead=1, error="The role may not."), (State.WARNING, "unreadable", 0.0)),
    ],
)
def test_verdicts(queue: Queue, verdict: tuple[State, str, float]) -> None:
    state, why, ratio = queue.verdict()
    assert (state, why if state is not State.OK else "", ratio) == verdict


def test_nothing_ready_has_no_age() -> None:
    assert Queue(target_age_seconds=60, ready=0, oldest_at=NOW - timedelta(hours=1)).verdict()[0] is State.OK


def test_worst_first() -> None:
    queues = [Queue(), aged(70), Queue(error="x"), aged(600), aged(30)]
    worst = sorted(queues, key=lambda queue: against(queue, queue, NOW).badness, reverse=True)
    assert worst == [queues[3], queues[1], queues[2], queues[4], queues[0]]

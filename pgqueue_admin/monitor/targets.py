"""Compares a queue with its targets: the one function behind every colour and "worst first" (C2)."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from pgqueue_admin.monitor.queue_table import TableKind


class TargetState(StrEnum):
    OK = "ok"
    PAUSED = "paused"  # a person paused it
    WARNING = "warning"  # cannot be judged
    CRITICAL = "critical"  # past a target


class Targets(Protocol):
    """NULL: no target."""

    target_age_seconds: int | None
    target_depth: int | None
    target_dead: int | None


class JudgedFigures(Protocol):
    ready: int | None
    depth: int | None
    dead: int | None
    oldest_at: datetime | None
    error: str


_BADNESS = {TargetState.OK: 0, TargetState.PAUSED: 1, TargetState.WARNING: 2, TargetState.CRITICAL: 3}


UNREAD = "unreadable"


class TargetVerdict(NamedTuple):
    """``why``: the target exceeded most: age, depth, dead; or unreadable, or paused.

    ``ratio``: value ÷ target.
    """

    state: TargetState
    why: str = ""
    ratio: float = 0.0
    value: float | None = None
    target: float | None = None

    @property
    def badness(self) -> tuple[int, float]:
        """Sort key: worst first in reverse order."""
        return _BADNESS[self.state], self.ratio


_DEFAULTS: dict[TableKind, dict[str, int]] = {
    TableKind.INPUT: {"target_age_seconds": 60, "target_dead": 0},
    TableKind.LEASE: {"target_age_seconds": 60, "target_dead": 0},
    TableKind.ERROR: {"target_dead": 0},
}


def default_targets(kind: TableKind | str) -> dict[str, int | None]:
    """Input and lease queues: a message waits at most a minute, and none is dead. Error queues: no rows at all."""
    none = {"target_age_seconds": None, "target_depth": None, "target_dead": None}
    return {**none, **_DEFAULTS.get(TableKind(kind), {})}


def against(targets: Targets, figures: JudgedFigures, now: datetime, paused: bool = False) -> TargetVerdict:
    """Judge one queue. An unknown figure exceeds no target, but an unknown age is a warning.

    An unreadable queue is a warning. ``paused``: its receivers were paused.
    """
    if figures.error:
        return TargetVerdict(TargetState.WARNING, UNREAD)
    waits = [TargetVerdict(TargetState.PAUSED, "paused")] if paused else []
    return max([*each(targets, figures, now, paused), *waits], key=lambda verdict: verdict.badness)


def each(targets: Targets, figures: JudgedFigures, now: datetime, paused: bool = False) -> list[TargetVerdict]:
    """Verdicts per target: each is a warning of its own; none while the queue is unreadable, because its figures are
    old.

    If ``paused``, only dead messages are judged: the waiting is intended.
    """
    if figures.error:
        return []
    dead = _ratio("dead", figures.dead, targets.target_dead)
    if paused:
        return [dead]
    return [dead, _age(targets, figures, now), _ratio("depth", figures.depth, targets.target_depth)]


def age(figures: JudgedFigures, now: datetime) -> float | None:
    """Seconds that the oldest ready message has waited; None if none is ready, or if unknown."""
    if figures.oldest_at is None or not figures.ready or figures.error:
        return None
    return max(0.0, (now - figures.oldest_at).total_seconds())


def age_is_unknown(figures: JudgedFigures) -> bool:
    """Messages are ready, but the oldest was not read, or not reached behind those in flight, expired or newer."""
    return bool(figures.ready) and figures.oldest_at is None and not figures.error


def _age(targets: Targets, figures: JudgedFigures, now: datetime) -> TargetVerdict:
    if targets.target_age_seconds is not None and age_is_unknown(figures):
        return TargetVerdict(TargetState.WARNING, "age", target=targets.target_age_seconds)
    return _ratio("age", age(figures, now), targets.target_age_seconds)


def _ratio(why: str, value: float | None, target: int | None) -> TargetVerdict:
    if value is None or target is None:
        return TargetVerdict(TargetState.OK)
    ratio = value / target if target else value + 1 if value else 0.0  # target 0: each one counts
    return TargetVerdict(TargetState.CRITICAL if value > target else TargetState.OK, why, ratio, value, target)

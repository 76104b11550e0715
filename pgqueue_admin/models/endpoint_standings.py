"""The state of each managed endpoint: running, short of processes, stopped or paused, and by whom.

Verdicts on pages, counts in the navigation and warnings all use this judgement.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from pgqueue_admin.models import AuditEntry, Endpoint, LatestSample
from pgqueue_admin.models.processes import EndpointProcesses


class State(IntEnum):
    """Worst last."""

    RUNNING = 0
    PAUSED = 1
    STOPPED = 2
    SHORT = 3


def state(want: int, have: int, paused: bool) -> State:
    """Paused wins over stopped: a person decided that its messages wait."""
    if want > have:
        return State.SHORT
    if paused:
        return State.PAUSED
    return State.RUNNING if want else State.STOPPED


_VERBS = {State.PAUSED: "pause", State.STOPPED: "stop"}


@dataclass(frozen=True, slots=True)
class Standing:
    """``who``, ``at``: of the act that stopped or paused it, if the audit has it. ``waiting``: ready messages in its
    queue, ``how``: how that count is known; None: unknown, or the endpoint runs."""

    team: EndpointProcesses
    state: State
    who: str = ""
    at: datetime | None = None
    waiting: int | None = None
    how: str = "counted"

    @property
    def endpoint(self) -> Endpoint:
        return self.team.endpoint

    @property
    def is_cause(self) -> bool:
        """Whether messages wait for a stopped endpoint that nobody paused."""
        return self.state is State.STOPPED and bool(self.waiting)

    @property
    def badness(self) -> tuple[bool, State, int]:
        """Sort key, worst first when reversed: a stopped endpoint with waiting messages outranks all else."""
        return self.is_cause, self.state, self.waiting or 0


def of(teams: Iterable[EndpointProcesses]) -> list[Standing]:
    """All standings, worst first. Queries acts and waiting messages only for stopped or paused endpoints."""
    found = [(team, state(team.want, team.have, team.endpoint.paused)) for team in teams]
    halted = [(team, how) for team, how in found if how in _VERBS]
    acts, ready = (_acts(halted), _ready(halted)) if halted else ({}, {})
    standings = [_standing(team, how, acts, ready) for team, how in found]
    return sorted(standings, key=lambda each: each.badness, reverse=True)


Acts = dict[tuple[str, str], AuditEntry]
Ready = dict[tuple[str, str], LatestSample]


def _standing(team: EndpointProcesses, how: State, acts: Acts, ready: Ready) -> Standing:
    row = team.endpoint
    act, seen = acts.get((row.name, _VERBS.get(how, ""))), ready.get((row.schema, row.table))
    waiting = seen.ready if seen and not seen.error else None
    return Standing(
        team, how, act.who if act else "", act.at if act else None, waiting, seen.how if seen else "counted"
    )


def _acts(halted: Sequence[tuple[EndpointProcesses, State]]) -> Acts:
    """The newest stop and pause of each endpoint."""
    names, verbs = [team.endpoint.name for team, _ in halted], {_VERBS[how] for _, how in halted}
    entries = AuditEntry.objects.filter(noun="endpoint", subject__in=names, verb__in=verbs)
    newest = entries.order_by("subject", "verb", "-id").distinct("subject", "verb")
    return {(entry.subject, entry.verb): entry for entry in newest}


def _ready(halted: Sequence[tuple[EndpointProcesses, State]]) -> Ready:
    tables = {team.endpoint.table for team, _ in halted}
    there = LatestSample.objects.filter(queue__gone_since=None, queue__table__in=tables).select_related("queue")
    return {(each.queue.schema, each.queue.table): each for each in there}

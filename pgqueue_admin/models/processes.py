"""Queries about processes: which run, which are missing, which have lost their heartbeat."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from django.db.models import (
    BooleanField,
    CharField,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Value,
)
from django.db.models.functions import Cast, Concat, Now

from pgqueue_admin.models import Alert, Endpoint, Process

HEARTBEAT_LOST = timedelta(seconds=10)
State = Process.State


def known() -> QuerySet[Process]:
    """All processes with the age of their heartbeat, whether it is lost, and whether a ``deaf`` warning names them."""
    return _known().all()


@cache
def _known() -> QuerySet[Process]:
    """Cached because building the query costs more than running it; never evaluated itself."""
    age = ExpressionWrapper(Now() - F("heartbeat_at"), output_field=DurationField())
    silent = Q(ended_at=None, heartbeat_at__lt=Now() - HEARTBEAT_LOST)
    place = Concat(OuterRef("host"), Value(" pid "), Cast(OuterRef("pid"), CharField()))
    deaf = Alert._base_manager.filter(kind="deaf", subject=OuterRef("endpoint"), cause=place, resolved_at=None)
    lost = ExpressionWrapper(silent, output_field=BooleanField())
    return Process.objects.annotate(heartbeat_age=age, heartbeat_lost=lost, is_deaf=Exists(deaf))


def heard_of() -> QuerySet[Process]:
    """Running processes with a recent heartbeat."""
    return known().filter(_heard_of())


def _heard_of() -> Q:
    return Q(ended_at=None, heartbeat_at__gte=Now() - HEARTBEAT_LOST)


def current() -> QuerySet[Process]:
    """Running processes, and those in back-off whose supervisor is alive to restart them."""
    return _current().all()


@cache
def _current() -> QuerySet[Process]:
    starter = Exists(Process.objects.filter(_heard_of(), role="supervisor", host=OuterRef("host")))
    there = known().filter(Q(ended_at=None) | Q(starter, state=State.BACK_OFF))
    return there.order_by("host", "role", "endpoint", "pid")


def supervisors() -> QuerySet[Process]:
    return current().filter(role="supervisor")


def begun_before(endpoint: Endpoint) -> QuerySet[Process]:
    """Running processes that started with settings older than the newest rolling restart."""
    return _of(endpoint).filter(started_version__lt=endpoint.restart_version)


def _of(endpoint: Endpoint) -> QuerySet[Process]:
    return heard_of().filter(role="endpoint", endpoint=endpoint.name)


@dataclass(frozen=True)
class EndpointProcesses:
    """An endpoint of ours with its processes."""

    endpoint: Endpoint
    processes: list[Any]  # Process, annotated as by ``known``

    @property
    def want(self) -> int:
        return self.endpoint.desired_processes

    @property
    def running(self) -> list[Any]:
        return [p for p in self.processes if p.ended_at is None and p.state != State.DRAINING and not p.heartbeat_lost]

    @property
    def have(self) -> int:
        return len(self.running)

    @property
    def filled(self) -> int:
        """Running processes that are desired: a surplus at one endpoint does not offset a shortage at another."""
        return min(self.want, self.have)

    @property
    def missing(self) -> int:
        return self.want - self.filled

    @property
    def waiting(self) -> Any | None:
        """The process in back-off, with ``last_error`` and ``next_start_at``."""
        return next((p for p in self.processes if p.state == State.BACK_OFF), None)

    @property
    def lost(self) -> list[Any]:
        return [p for p in self.processes if p.heartbeat_lost]

    @property
    def busy(self) -> int:
        return sum(p.busy for p in self.running)

    @property
    def slots(self) -> int:
        return sum(p.slots for p in self.running)

    @property
    def not_restarted(self) -> int:
        """Running processes that started before the newest rolling restart."""
        return sum(p.started_version < self.endpoint.restart_version for p in self.running)

    @property
    def versions(self) -> list[str]:
        """Code versions of running processes: several during an upgrade, or when hosts differ."""
        return sorted({p.code_version for p in self.running if p.code_version})

    @property
    def breakers(self) -> list[tuple[Any, dict[str, Any]]]:
        """Open circuit breakers, each with its process."""
        return [(process, breaker) for process in self.running for breaker in process.breakers]

    def total(self, field: str) -> Any:
        """Sum over the running processes, since each started; None if none reports the field."""
        known = self._known(field)
        return sum(known) if known else None

    def worst(self, field: str) -> float | None:
        return max(self._known(field), default=None)

    def _known(self, field: str) -> list[Any]:
        return [value for p in self.running if (value := getattr(p, field)) is not None]


def of_endpoint(name: str) -> EndpointProcesses:
    return EndpointProcesses(Endpoint.objects.get(name=name), list(current().filter(role="endpoint", endpoint=name)))


def by_endpoint(names: Collection[str] | None = None) -> list[EndpointProcesses]:
    """All endpoints of ours, or those named, ordered by name: two statements, however many there are."""
    processes, endpoints = current().filter(role="endpoint"), Endpoint.objects.filter(ours=True)
    if names is not None:
        processes, endpoints = processes.filter(endpoint__in=names), endpoints.filter(name__in=names)
    found: dict[str, list[Any]] = {}
    for process in processes:
        found.setdefault(process.endpoint, []).append(process)
    return [EndpointProcesses(row, found.get(row.name, [])) for row in endpoints]


@dataclass(frozen=True)
class SettingsAdoption:
    """How many of an endpoint's processes run with its newest settings, and how soon the last of them adopted these."""

    by: int
    of: int
    seconds: float | None


def taken(endpoint: Endpoint) -> SettingsAdoption:
    living = _of(endpoint)
    took = living.filter(settings_version__gte=endpoint.version)
    last = took.filter(settings_at__gte=endpoint.changed_at).aggregate(at=Max("settings_at"))["at"]
    seconds = (last - endpoint.changed_at).total_seconds() if last else None
    return SettingsAdoption(took.count(), living.count(), seconds)

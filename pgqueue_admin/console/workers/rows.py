"""Processes, hosts and missing processes, in words: for Workers and an endpoint's page."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from django.conf import settings

from pgqueue_admin.console import verdicts
from pgqueue_admin.console.verdicts import Verdict
from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.formatting import escape_invisible, names
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.models import Endpoint, Process, database_clock, processes
from pgqueue_admin.models.crashing_messages import CrashingMessage
from pgqueue_admin.models.endpoint_standings import Standing
from pgqueue_admin.services.content_access import ContentAccess

_PROGRAMS = {"celery-worker": "Celery worker", "celery-beat": "Celery beat"}
RECENT = timedelta(minutes=1)
_TONES = {"lost": "crit", "crashed": "crit", "back-off": "crit"}


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process as a page shows it."""

    process: Any  # Process, annotated as by models.processes.known
    endpoint: Endpoint | None = None  # its endpoint, if that is ours

    @property
    def name(self) -> str:
        return str(_PROGRAMS.get(self.process.role, self.process.label))

    @property
    def memory_limit(self) -> int | None:
        """In bytes: above it the process is drained; if no such limit is set, the one above which it is killed."""
        limit = self.endpoint and (self.endpoint.memory_mb or self.endpoint.memory_kill_mb)
        return limit * 1_000_000 if limit else None

    @property
    def state(self) -> str:
        return "lost" if self.process.heartbeat_lost else str(self.process.state)

    @property
    def word(self) -> str:
        words = {"lost": "lost heartbeat", "draining": f"draining, {self.process.busy} left"}
        return words.get(self.state, self.state)

    @property
    def tone(self) -> str:
        return _TONES.get(self.state, "")

    @property
    def is_cut_off(self) -> bool:
        """Whether it runs with an open circuit breaker."""
        return self.state == Process.State.RUNNING and bool(self.process.breakers)

    @property
    def is_deaf(self) -> bool:
        """Whether it runs, but by the alerter's finding receives nothing while messages wait."""
        return self.state == Process.State.RUNNING and bool(self.process.is_deaf)

    @property
    def is_program(self) -> bool:
        """Whether it is a program of the console (sampler, alerter, Celery): no endpoint's process, no supervisor."""
        return self.process.role not in {"endpoint", "supervisor"}

    def trouble(self, access: ContentAccess) -> str:
        """Why it does not work: how it ended, or the last error of a silent one, unless that was long before."""
        of, at = self.process, self.process.last_error_at
        if of.heartbeat_lost and at and of.heartbeat_at - at > RECENT:
            return ""
        return access.process_error(of).rstrip(".")

    @property
    def is_due(self) -> bool:
        """Whether its next start is due: its supervisor takes a moment."""
        at = self.process.next_start_at
        return bool(at and at <= database_clock.now())

    @property
    def ended_by(self) -> datetime | None:
        """When a silent one is killed, and then restarted, at the latest; None: it is not."""
        after = settings.PGQUEUE["LIVENESS_TIMEOUT_SECONDS"]
        if not after or self.process.role == "supervisor" or not self.process.heartbeat_lost:
            return None
        return self.process.heartbeat_at + timedelta(seconds=after)

    @property
    def seconds_up(self) -> float | None:
        """Uptime in seconds; of a silent process until its last heartbeat."""
        if self.process.ended_at is not None:
            return None
        until = self.process.heartbeat_at if self.process.heartbeat_lost else database_clock.now()
        return max(0.0, (until - self.process.started_at).total_seconds())


@dataclass(frozen=True, slots=True)
class HostRow:
    name: str
    supervisor: ProcessRow | None
    rows: list[ProcessRow] = field(default_factory=list)

    @property
    def silent_since(self) -> datetime | None:
        """The last heartbeat of its supervisor, if that is too long ago."""
        known = self.supervisor.process if self.supervisor else None
        return known.heartbeat_at if known and known.heartbeat_lost else None

    @property
    def has_endpoints(self) -> bool:
        return any(row.process.role == "endpoint" for row in self.rows)


def staff_state(staff: processes.EndpointProcesses) -> tuple[str, str]:
    """How our endpoint is staffed with processes: the word, and the state it is drawn as."""
    if staff.missing:
        return "short of processes", "critical"
    if staff.breakers:
        return "circuit breaker open", "critical"
    if staff.not_restarted:
        done = staff.have - staff.not_restarted
        return f"restarting, {done} of {staff.have} done", "waiting"
    if staff.endpoint.paused:
        return "paused", "paused"
    return ("running", "running") if staff.have else ("stopped", "stopped")


@dataclass(frozen=True, slots=True)
class EndpointHalt:
    """Why an endpoint does not run now, and the act that makes it: the word, and the name of its URL."""

    why: str
    word: str
    act: str


def halted(staff: processes.EndpointProcesses) -> EndpointHalt | None:
    if staff.endpoint.paused:
        return EndpointHalt("is paused", "Resume", "endpoint_resume")
    if not staff.want:
        return EndpointHalt("is stopped", "Start", "endpoint_start")
    at = staff.waiting.next_start_at if staff.waiting and not staff.have else None
    seconds = (at - database_clock.now()).total_seconds() if at else 0
    if seconds <= 1:
        return None
    return EndpointHalt(f"starts again in {duration(round(seconds))}", "Start now", "endpoint_start")


def title(staff: processes.EndpointProcesses) -> str:
    """The title of an endpoint's page."""
    return f"{staff.endpoint.name}, {staff_state(staff)[0]}"


def rows(found: Iterable[Process], staffed: Iterable[processes.EndpointProcesses]) -> list[ProcessRow]:
    """Processes, each with its endpoint if that is ours."""
    ours = {each.endpoint.name: each.endpoint for each in staffed}
    return [ProcessRow(each, ours.get(each.endpoint) if each.role == "endpoint" else None) for each in found]


def known(staffed: Iterable[processes.EndpointProcesses]) -> list[ProcessRow]:
    """All processes; under a queue scope those of visible endpoints, since the console's own serve all queues."""
    found = rows(processes.current(), staffed)
    return found if visible_queues.current() is None else [row for row in found if row.endpoint]


def ended(why: str) -> str:
    """``ended by SIGKILL``, as its supervisor says it; any other reason follows the word ``ended``."""
    return why if why.startswith(("ended ", "killed", "drained")) else f"ended: {why}"


def hosts(found: Iterable[ProcessRow]) -> list[HostRow]:
    return [_host(name, list(group)) for name, group in groupby(found, lambda row: row.process.host)]


def broken_programs(found: Collection[ProcessRow]) -> list[ProcessRow]:
    """Programs of the console that are silent or ended, unless another host has one of the kind."""
    at_work = {row.name for row in found if row.is_program and not row.tone}
    return [row for row in found if row.is_program and row.tone and row.name not in at_work]


def verdict(
    standings: Sequence[Standing], found: Collection[ProcessRow], suspects: Collection[CrashingMessage] = ()
) -> Verdict:
    """The verdict of Workers: our endpoints first, then supervisors, programs and crashing messages."""
    said = verdicts.of_endpoints(standings)
    if said and said.tone == "crit":
        return said
    if trouble := _trouble(found, suspects):
        return Verdict("crit", trouble, trouble, said.sentence if said else "")
    if said:
        return said
    fine = verdicts.all_run([each.team for each in standings])
    return Verdict("good", fine, fine)


def _trouble(found: Collection[ProcessRow], suspects: Collection[CrashingMessage]) -> str:
    of_all = visible_queues.current() is None
    if of_all and not any(row.process.role == "supervisor" for row in found):
        return "No supervisor has reported"
    if broken := sorted({row.name for row in broken_programs(found)}):
        return f"The {names.listed(broken)} {'does' if len(broken) == 1 else 'do'} not work"
    if suspects:
        ended = sorted({each.endpoint for each in suspects})
        return f"{names.listed(ended)} {'keeps' if len(ended) == 1 else 'keep'} ending over one message"
    return ""


def failing(staffed: Iterable[processes.EndpointProcesses]) -> list[tuple[str, list[str]]]:
    """Errors of open circuit breakers, each with its endpoints: one unreachable database is one trouble."""
    found: dict[str, dict[str, None]] = {}
    for each in staffed:
        for _, breaker in each.breakers:
            found.setdefault(escape_invisible.first_line(breaker["error"]), {})[each.endpoint.name] = None
    return [(error, list(of)) for error, of in found.items()]


def _host(name: str, found: list[ProcessRow]) -> HostRow:
    supervisor = next((row for row in found if row.process.role == "supervisor"), None)
    return HostRow(name, supervisor, [row for row in found if row is not supervisor])

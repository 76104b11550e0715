"""The desired processes of this host, read from the console's database."""

from zlib import crc32

from django.conf import settings
from django.db.models import Max
from django.db.models.functions import Now

from pgqueue_admin.models import Endpoint, Process, processes
from pgqueue_admin.workers.processes.endpoint_settings import to_text
from pgqueue_admin.workers.reporting.process_identity import ProcessIdentity
from pgqueue_admin.workers.supervisor.role import MemoryLimit, Role, RoleKey


def roles(host: str) -> list[Role]:
    """Every endpoint of ours, with this host's share of its processes."""
    index, hosts = place_among_supervisors(host)
    ours = Endpoint.objects.filter(ours=True)
    return [endpoint_role(row, share(row.desired_processes, index, hosts, row.name), host) for row in ours]


def share(want: int, index: int, hosts: int, endpoint: str) -> int:
    """Divide the total evenly among supervisors, ordered by name.

    Each endpoint's remainder goes to other hosts: else all endpoints with one process would run on the first.
    """
    first = crc32(endpoint.encode()) % hosts  # equal in every process, unlike hash()
    return want // hosts + (1 if (index - first) % hosts < want % hosts else 0)


def place_among_supervisors(host: str) -> tuple[int, int]:
    """This host's index, by name, among hosts with a live supervisor, and their number."""
    fresh = processes.heard_of().filter(role="supervisor")
    hosts = sorted({host, *fresh.values_list("host", flat=True)})
    return hosts.index(host), len(hosts)


def endpoint_role(row: Endpoint, want: int, host: str) -> Role:
    return Role(
        RoleKey("endpoint", row.name),
        ("worker", row.name),
        want,
        row.drain_seconds,
        known_settings=to_text(row),
        version=row.version,
        ceiling=MemoryLimit(row.memory_mb, row.memory_kill_mb),
        rolling=is_rolling(row),
        replace=next_to_replace(row, host),
        hung_after=settings.PGQUEUE["LIVENESS_TIMEOUT_SECONDS"],
    )


def start_now(host: str) -> set[RoleKey]:
    """Roles in back-off that a person asked to start now: all their crashed processes are due, not only the first."""
    waiting = Process.objects.filter(host=host, state=Process.State.BACK_OFF).values_list("role", "endpoint")
    due = waiting.annotate(last=Max("next_start_at")).filter(last__lte=Now())
    return {RoleKey(role, endpoint) for role, endpoint, _ in due}


# A rolling restart: the process to replace next, on any host, one at a time.
_WELL = {Process.State.RUNNING, Process.State.PAUSED}


def is_rolling(endpoint: Endpoint) -> bool:
    """Whether a process still runs that started before the restart was requested."""
    return endpoint.restart_version > 0 and processes.begun_before(endpoint).exists()


def next_to_replace(endpoint: Endpoint, host: str) -> ProcessIdentity | None:
    """This host's process to replace next; None if it is another host's turn, or a process is missing or draining.

    Settings versions tell which processes are old, not times: the clocks of hosts differ.
    """
    first = processes.begun_before(endpoint).order_by("host", "pk").first() if endpoint.restart_version else None
    if first is None or not _all_well(endpoint):
        return None
    return ProcessIdentity(first.host, first.pid, first.start_ticks) if first.host == host else None


def _all_well(endpoint: Endpoint) -> bool:
    found = [p for p in processes.of_endpoint(endpoint.name).processes if not p.heartbeat_lost]
    return len(found) >= endpoint.desired_processes and all(p.ended_at is None and p.state in _WELL for p in found)

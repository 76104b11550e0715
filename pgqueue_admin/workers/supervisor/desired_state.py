"""What should run on this host, read from the console's database."""

from zlib import crc32

from django.conf import settings
from django.db.models import Max
from django.db.models.functions import Now

from pgqueue_admin.models import Endpoint, Process, processes
from pgqueue_admin.workers.processes.endpoint_settings import to_text
from pgqueue_admin.workers.processes.memory_limit import MemoryLimit
from pgqueue_admin.workers.supervisor import rolling_restart
from pgqueue_admin.workers.supervisor.role import Role, RoleKey


def roles(host: str) -> list[Role]:
    """Every endpoint of ours, with this host's share of its processes."""
    index, hosts = place_among_supervisors(host)
    ours = Endpoint.objects.filter(ours=True)
    return [endpoint_role(row, share(row.desired_processes, index, hosts, row.name), host) for row in ours]


def share(want: int, index: int, hosts: int, endpoint: str) -> int:
    """Processes are wanted in all; supervisors divide them evenly, in the order of their names.

    What is left over goes to other hosts for other endpoints: many of one process would all run on the first.
    """
    first = crc32(endpoint.encode()) % hosts  # the same in every process, as hash() is not
    return want // hosts + (1 if (index - first) % hosts < want % hosts else 0)


def place_among_supervisors(host: str) -> tuple[int, int]:
    """From 0, by name, among the hosts that are heard of; and how many these are."""
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
        rolling=rolling_restart.under_way(row),
        replace=rolling_restart.turn(row, host),
        hung_after=settings.PGQUEUE["LIVENESS_TIMEOUT_SECONDS"],
    )


def start_now(host: str) -> set[RoleKey]:
    """Roles in back-off whose next start a person has moved to now: of all that crashed, not only of the first ones."""
    waiting = Process.objects.filter(host=host, state=Process.State.BACK_OFF).values_list("role", "endpoint")
    due = waiting.annotate(last=Max("next_start_at")).filter(last__lte=Now())
    return {RoleKey(role, endpoint) for role, endpoint, _ in due}

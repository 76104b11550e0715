"""A rolling restart: which process is to be replaced next, on whichever host, so that one at a time goes."""

from pgqueue_admin.models import Endpoint, Process, processes
from pgqueue_admin.workers.reporting.process_identity import ProcessIdentity

_WELL = {Process.State.RUNNING, Process.State.PAUSED}


def under_way(endpoint: Endpoint) -> bool:
    """Whether a process runs that began before the restart was asked for."""
    return endpoint.restart_version > 0 and processes.begun_before(endpoint).exists()


def turn(endpoint: Endpoint, host: str) -> ProcessIdentity | None:
    """The process of this host whose turn it is; None while it is another host's, or while one is missing or drains.

    Versions of the settings tell who is old, not times: the clocks of hosts differ.
    """
    first = processes.begun_before(endpoint).order_by("host", "pk").first() if endpoint.restart_version else None
    if first is None or not _all_well(endpoint):
        return None
    return ProcessIdentity(first.host, first.pid, first.start_ticks) if first.host == host else None


def _all_well(endpoint: Endpoint) -> bool:
    found = [p for p in processes.of_endpoint(endpoint.name).processes if not p.heartbeat_lost]
    return len(found) >= endpoint.desired_processes and all(p.ended_at is None and p.state in _WELL for p in found)

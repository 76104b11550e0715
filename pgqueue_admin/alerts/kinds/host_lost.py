"""A host's supervisor does not report any more, and did not shut down in order.

First step: Start its supervisor again; if the host is gone, press *gone for good* on Workers.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from pgqueue_admin.alerts.finding import CRITICAL, WARNING, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import hosts
from pgqueue_admin.models import Process

SILENT = timedelta(seconds=60)  # other hosts take over after ten; a machine restarts in less


def can_tell(look: AlertSnapshot) -> bool:
    """Whether heartbeats can be judged: none arrived during an outage of the console's database."""
    return look.heard_for >= SILENT


def find(look: AlertSnapshot) -> Iterator[Finding]:
    newest: dict[str, Process] = {}
    for process in look.processes:
        if process.role == "supervisor" and process.ended_at is None:
            newest[process.host] = max(newest.get(process.host, process), process, key=lambda each: each.heartbeat_at)
    gone = {host: last for host, last in newest.items() if look.now - last.heartbeat_at >= SILENT}
    return (_found(look, last, others=len(newest) > len(gone)) for last in gone.values())


def _found(look: AlertSnapshot, last: Process, others: bool) -> Finding:
    ran = Counter(process.endpoint for process in look.processes if _ended_with(process, last))
    runs = Counter(process.endpoint for process in look.processes if _runs(look, process))
    want = {endpoint.name: endpoint.desired_processes for endpoint in look.endpoints}
    short = [(name, runs[name], want.get(name, 0)) for name in ran if runs[name] < want.get(name, 0)]
    said = hosts.gone(sorted(ran.items()), short, others, SILENT.total_seconds())
    severity = CRITICAL if short else WARNING
    return Finding("host_lost", last.host, said, severity, since=last.heartbeat_at)


def _ended_with(process: Process, last: Process) -> bool:
    """Whether an endpoint's process reported as long as its supervisor did."""
    there = process.role == "endpoint" and process.host == last.host and process.ended_at is None
    return there and process.heartbeat_at > last.heartbeat_at - SILENT


def _runs(look: AlertSnapshot, process: Process) -> bool:
    return process.role == "endpoint" and process.state != Process.State.DRAINING and look.hears_of(process)


KIND = AlertKind("host_lost", "host gone", find, can_tell=can_tell)

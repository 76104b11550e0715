"""A host's supervisor is not heard of any more, and did not end in order."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from pgqueue_admin.alerts.found import CRITICAL, WARNING, Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.records.models import Process
from pgqueue_admin.wording import hosts

SILENT = timedelta(seconds=60)  # the others have its share after ten; a machine that restarts is back in less


def can_tell(look: Look) -> bool:
    """After an outage of the console's database nobody has been heard of for as long as that took."""
    return look.heard_for >= SILENT


def find(look: Look) -> Iterator[Found]:
    newest: dict[str, Process] = {}
    for process in look.processes:
        if process.role == "supervisor" and process.ended_at is None:
            newest[process.host] = max(newest.get(process.host, process), process, key=lambda each: each.heartbeat_at)
    gone = {host: last for host, last in newest.items() if look.now - last.heartbeat_at >= SILENT}
    return (_found(look, last, others=len(newest) > len(gone)) for last in gone.values())


def _found(look: Look, last: Process, others: bool) -> Found:
    ran = Counter(process.endpoint for process in look.processes if _ended_with(process, last))
    runs = Counter(process.endpoint for process in look.processes if _runs(look, process))
    want = {endpoint.name: endpoint.desired_processes for endpoint in look.endpoints}
    short = [(name, runs[name], want.get(name, 0)) for name in ran if runs[name] < want.get(name, 0)]
    said = hosts.gone(sorted(ran.items()), short, others, SILENT.total_seconds())
    severity = CRITICAL if short else WARNING
    return Found("host_gone", last.host, said, severity, since=last.heartbeat_at)


def _ended_with(process: Process, last: Process) -> bool:
    """A process of an endpoint that was heard of as long as its supervisor was."""
    there = process.role == "endpoint" and process.host == last.host and process.ended_at is None
    return there and process.heartbeat_at > last.heartbeat_at - SILENT


def _runs(look: Look, process: Process) -> bool:
    return process.role == "endpoint" and process.state != Process.State.DRAINING and look.hears_of(process)


KIND = Kind("host_gone", "host gone", find, can_tell=can_tell)

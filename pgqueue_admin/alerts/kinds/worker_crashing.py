"""A child of the supervisor ends repeatedly.

First step: Read the last error in its log on Workers; pause the endpoint if each start does harm.
"""

from collections import defaultdict
from collections.abc import Iterator

from pgqueue_admin.alerts.finding import CRITICAL, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import CRASH_WINDOW, AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.models import Process
from pgqueue_admin.services import content_access

LIMIT = 2
_CRASHED = (Process.State.CRASHED, Process.State.BACK_OFF)  # LOST ones ended with their supervisor


def find(look: AlertSnapshot) -> Iterator[Finding]:
    by_name: dict[str, list[Process]] = defaultdict(list)
    for process in look.processes:
        if process.ended_at and process.state in _CRASHED and process.ended_at > look.now - CRASH_WINDOW:
            by_name[process.label].append(process)
    for name, ended in by_name.items():
        if len(ended) > LIMIT:
            last = max(ended, key=lambda process: process.ended_at or look.now)
            why = content_access.NOTHING.process_error(last)
            said = warnings.worker_crashing(len(ended), CRASH_WINDOW.total_seconds(), LIMIT, why)
            yield Finding("worker_crashing", name, said, CRITICAL)


KIND = AlertKind("worker_crashing", "process keeps ending", find)

"""Lease messages with expired locks stay in their table, neither processed nor dead: nothing ends the locks.

First step: Start a supervisor, beat or the job of pg_cron, or run `manage.py lease expire`.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import CRITICAL, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.periodic_looks import LOCK_LATE
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.formatting import warnings
from pgqueue_admin.models.queue_database import queue_database


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for locks in look.lease_locks or []:
        if locks.late > LOCK_LATE:
            late, limit = locks.late.total_seconds(), LOCK_LATE.total_seconds()
            said = warnings.expired_locks(locks.over.number, locks.over.how, late, limit, locks.is_ours)
            address = queue_database().dialect.canonical(QUEUE)
            yield Finding("expired_locks", address, said, CRITICAL, queue=address, since=locks.over.since)


def is_known(look: AlertSnapshot) -> bool:
    return look.lease_locks is not None


KIND = AlertKind("expired_locks", "expired locks", find, can_tell=is_known)

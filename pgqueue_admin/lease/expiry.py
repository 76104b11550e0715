"""The lease queue's work of each minute. Any number of processes may run it at once."""

import time
from typing import NamedTuple

from pgqueue_admin.dialects import Connection, Dialect
from pgqueue_admin.dialects.lease_store import Expired
from pgqueue_admin.lease.queue import ROUND, Leases

SECONDS = 10.0  # then the next run continues
BY = "pgqueue expiry"


class UpkeepDone(NamedTuple):
    """Messages with expired locks, and unprocessed messages that were notified again."""

    archived: int
    released: int
    told: int


def end_and_renotify(session: Connection, dialect: Dialect, seconds: float = SECONDS) -> UpkeepDone:
    """End expired locks for a limited time, and NOTIFY again; no effect without our lease queue."""
    store = dialect.leases
    if store is None or not store.is_installed(session):
        return UpkeepDone(0, 0, 0)
    leases = Leases(BY, store, session)
    archived, released = expire(leases, time.monotonic() + seconds)
    return UpkeepDone(archived, released, leases.renotify())


def expire(leases: Leases, deadline: float = float("inf")) -> Expired:
    """Archive or release all messages with expired locks, one round per statement. No round starts after
    ``deadline``."""
    archived, released = 0, 0
    while time.monotonic() < deadline:
        done = leases.expire()
        archived, released = archived + done.archived, released + done.released
        if sum(done) < ROUND:
            break
    return Expired(archived, released)

"""What has to be done for the lease queue each minute, by whoever does it: all of them at once do no harm."""

import time
from typing import NamedTuple

from pgqueue_admin.dialects import Connection, Dialect
from pgqueue_admin.dialects.lease_store import Expired
from pgqueue_admin.lease.queue import ROUND, Leases

SECONDS = 10.0  # then the next run goes on
BY = "pgqueue expiry"


class UpkeepDone(NamedTuple):
    """Messages whose locks were over, and unprocessed ones that were told again."""

    archived: int
    released: int
    told: int


def keep(session: Connection, dialect: Dialect, seconds: float = SECONDS) -> UpkeepDone:
    """End or release what has expired, for a while, and NOTIFY again; nothing where there is no lease queue of ours."""
    store = dialect.leases
    if store is None or not store.is_installed(session):
        return UpkeepDone(0, 0, 0)
    leases = Leases(BY, store, session)
    archived, released = expire(leases, time.monotonic() + seconds)
    return UpkeepDone(archived, released, leases.renotify())


def expire(leases: Leases, deadline: float = float("inf")) -> Expired:
    """End or release all whose locks are over, a round a statement. Nothing more is begun after ``deadline``."""
    archived, released = 0, 0
    while time.monotonic() < deadline:
        done = leases.expire()
        archived, released = archived + done.archived, released + done.released
        if sum(done) < ROUND:
            break
    return Expired(archived, released)

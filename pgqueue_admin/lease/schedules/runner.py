"""The schedules' work of each minute. However many processes run it, each due time is sent once."""

from pgqueue_admin.dialects import Connection, Dialect
from pgqueue_admin.dialects.schedule_store import RunsDone
from pgqueue_admin.lease.schedules import due_times

GRACE = 300.0  # seconds: a run within it is late; beyond it the due time was missed
MOST = 500  # schedules per statement
NONE = RunsDone(0, 0, 0)


def run(session: Connection, dialect: Dialect, who: str, grace: float = GRACE) -> RunsDone:
    """Send what is due, and plan ahead; no effect without our tables. ``who``: shown on the page."""
    store = dialect.schedules
    if store is None or not store.is_installed(session):
        return NONE
    due_times.extend(session, store)
    return store.run(session, who, MOST, grace)


def due_in(session: Connection, dialect: Dialect) -> float | None:
    """Seconds until the next future due time; None if there is none, or no tables."""
    store = dialect.schedules
    return store.due_in(session) if store is not None and store.is_installed(session) else None

"""The role that reads the queues, and whether it may write. Queried in a thread: the query may hang, a page not."""

import threading
import time
from typing import NamedTuple

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models.queue_database import QueueDatabase, queue_database

FRESH_SECONDS = 30.0
FIRST_WAIT = 0.5  # the page that starts the query waits this long for the answer; other pages do not wait


class DatabaseRole(NamedTuple):
    name: str
    read_only: bool
    standby: bool = False
    refuses_writes: bool = False  # default_transaction_read_only is on

    @property
    def refusal(self) -> str:
        """Why no act can work, or ""."""
        if self.standby:
            return "the database is a standby and takes no writes"
        if self.refuses_writes:
            return "the database takes no writes now (default_transaction_read_only is on)"
        return f"the database role {self.name} may only SELECT" if self.read_only else ""


class _Asked:
    def __init__(self) -> None:
        self.role: DatabaseRole | None = None
        self.at = float("-inf")
        self.answered = threading.Event()


_asked: dict[str, _Asked] = {}


def current() -> DatabaseRole | None:
    """The role, at most FRESH_SECONDS old; None if unknown. Only the caller that starts a query waits for it."""
    of = queue_database()
    known = _asked.setdefault(of.dsn, _Asked())
    if time.monotonic() - known.at > FRESH_SECONDS:
        known.at = time.monotonic()
        known.answered.clear()
        threading.Thread(target=_ask, args=(of, known), daemon=True, name="role").start()
        known.answered.wait(FIRST_WAIT)
    return known.role if known.answered.is_set() else None


def _ask(of: QueueDatabase, known: _Asked) -> None:
    try:
        with of.write_session() as connection:  # a write session, as acts use: a read-only session would look refused
            row = connection.one(of.dialect.rights.role(), {"schemas": list(of.schemas)})
        known.role = (
            DatabaseRole(row.name, row.read_only or row.standby, row.standby, row.refuses_writes) if row else None
        )
    except DatabaseError:
        known.role = None  # an old refusal may no longer hold; the page itself shows that the database does not answer
    finally:
        known.answered.set()

"""Sessions that Spark reads with: they can only read, and end by themselves; where they cannot, they are ended."""

import logging
import time
from uuid import uuid4

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.connect_options import (
    ONLY_LOOKING,
    OWN_PATH,
    address,
    primary_for_lookers,
    said_by,
)

log = logging.getLogger(__name__)
LIMIT = 600  # seconds a statement may take
SPARE = 30  # more of them until it is ended from outside: most hear of their limit
EVERY = 10.0  # seconds between two looks, from then on
NAME = "pgqueue-admin history"


def for_looking(dsn: str, limit: int = LIMIT) -> str:
    """Where to, for Arrow's driver, which knows none of our pools. Each batch has a name of its own there."""
    asked = said_by(dsn)
    asked |= primary_for_lookers(asked)
    asked["options"] = f"{asked.get('options') or ''} {_only(limit)}".strip()
    asked["application_name"] = f"{NAME} {uuid4().hex[:12]}"
    asked["client_encoding"] = "UTF8"  # whatever the database has: Arrow's texts, and those of files, are UTF-8
    return address(asked)


def _only(limit: int) -> str:
    """Values are written into the statements, hence standard strings. A batch is read in parts of its own: workers of
    the server's would be more of its processes, and wide rows cost more to hand on than to find. The last one is of
    TCP, and needs nobody here.
    """
    return (
        f"{OWN_PATH} {ONLY_LOOKING} -c statement_timeout={limit}s -c timezone=UTC"
        f" -c standard_conforming_strings=on -c max_parallel_workers_per_gather=0 -c tcp_user_timeout={limit}s"
    )


class ReadOverdue:
    """A session whose reader stands still waits in sending, where it hears of a time limit by luck alone: for as long
    as it does, its snapshot keeps vacuum from all tables.

    ``uri``: of ``for_looking``; no other batch's sessions have its name.
    """

    def __init__(self, uri: str, limit: float = LIMIT + SPARE):
        self._uri, self._limit = uri, limit
        self._name = said_by(uri)["application_name"]
        self._look_at = time.monotonic() + limit

    def ended(self) -> bool:
        """Whether any was, now. Call it again and again: before the first can be overdue nobody is asked."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + EVERY
        try:
            with postgresql().connect(self._uri, application_name=f"{NAME} limits") as connection:
                about = {"name": self._name, "limit": self._limit}
                ended = connection.value(postgresql().history.end_overdue(), about)
        except DatabaseError:  # the next look may find it, or there is nobody to be found
            return False
        if ended:
            log.warning("History: %s sessions waited %.0f s for their reader and were ended.", ended, self._limit)
        return bool(ended)

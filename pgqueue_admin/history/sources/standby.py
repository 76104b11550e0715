"""Where rows are read: the queues' database, or a standby of it (PGQUEUE_HISTORY_URL) that has replayed the plan."""

import time
from typing import Any

from django.conf import settings

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models.queue_database import queue_database

PATIENCE, BETWEEN = 10.0, 0.1  # seconds


class StandbyUnreachable(Exception):
    """The standby has not replayed what was planned, does not answer, or is none: nothing was read of it."""


def read_from(connection: Connection) -> str:
    """The DSN, once all that ``connection`` (of the queues' database) has seen can be seen there. Raises NotThere.

    Plans are never made there: a standby's snapshots do not name those who are still writing.
    """
    dsn: str = settings.PGQUEUE["HISTORY_URL"]
    if not dsn:
        return queue_database().dsn
    written = connection.all(postgresql().history.written())[0]
    try:
        with postgresql().connect(dsn, read_only=True, application_name="pgqueue-admin history") as standby:
            _wait(standby, written)
    except DatabaseError as error:
        raise StandbyUnreachable(f"The standby that history is read from does not answer: {error}") from error
    return dsn


def _wait(standby: Connection, written: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while (there := standby.all(postgresql().history.replayed(), {"lsn": written.lsn})[0]).behind != 0:
        if there.behind is None or there.cluster != written.cluster:
            raise StandbyUnreachable(
                "PGQUEUE_HISTORY_URL is no standby of the database with the queues: nothing is read from it."
            )
        if time.monotonic() > deadline:
            raise StandbyUnreachable(
                f"The standby that history is read from is {there.behind:,} bytes behind: asked again soon."
            )
        time.sleep(BETWEEN)

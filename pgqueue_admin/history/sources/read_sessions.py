"""Sessions that Spark reads with: read-only, limited in time, ended by us where the server cannot."""

import logging
import time
from typing import Any
from uuid import uuid4

from django.conf import settings

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.connect_options import (
    ONLY_LOOKING,
    OWN_PATH,
    address,
    primary_for_lookers,
    said_by,
)
from pgqueue_admin.dialects.postgresql.pooler_check import first_path
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.models.raw_sql import console_sql
from pgqueue_admin.models.schema import SchemaCreator

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


# Where rows are read: the queues' database, or a standby of it (PGQUEUE_HISTORY_URL) that has replayed the plan.
PATIENCE, BETWEEN = 10.0, 0.1  # seconds


class StandbyUnreachable(Exception):
    """The standby has not replayed what was planned, does not answer, or is none: nothing was read of it."""


class PathOpen(Exception):
    """Somebody could have code of theirs run by the first statements of Arrow's driver: nothing was read."""


def read_from(connection: Connection) -> str:
    """The DSN, once all that ``connection`` (of the queues' database) has seen can be seen there. Raises PathOpen, and
    StandbyUnreachable.

    Plans are never made there: a standby's snapshots do not name those who are still writing.
    """
    dsn: str = settings.PGQUEUE["HISTORY_URL"]
    if not dsn:
        _refuse_strangers(connection, queue_database().dsn)
        return queue_database().dsn
    written = connection.all(postgresql().history.written())[0]
    try:
        with postgresql().connect(dsn, read_only=True, application_name="pgqueue-admin history") as standby:
            _wait(standby, written)
        _refuse_strangers(connection, dsn)
    except DatabaseError as error:
        raise StandbyUnreachable(f"The standby that history is read from does not answer: {error}") from error
    return dsn


def _refuse_strangers(connection: Connection, dsn: str) -> None:
    """The driver asks for the types that there are before it can be told anything, and names ``<>`` without schema."""
    path = [each for each in first_path(for_looking(dsn)) if each != "pg_catalog"]
    asked = {"schemas": path}
    for schema, who in connection.all(console_sql.console_schema.granted(), asked) if path else []:
        raise PathOpen(
            "Nothing is read: a pooler drops the search path that its sessions are to start with, and in the schema "
            f"{schema}, where they look instead, {who or 'everybody'} may create: code made there would run. "
            f"Have its owner run: {SchemaCreator(schema, who).cure}"
        )


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

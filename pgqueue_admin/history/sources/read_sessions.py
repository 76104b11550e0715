"""Spark's read sessions: read-only, limited in time, and ended from here when the server cannot end them."""

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
LIMIT = 600  # statement timeout, in seconds
SPARE = 30  # further seconds until a session is ended from outside: most meet their timeout before
EVERY = 10.0  # seconds between two checks after that
NAME = "pgqueue-admin history"


def for_looking(dsn: str, limit: int = LIMIT) -> str:
    """Connection URI for Arrow's driver, which cannot use our pools. Each batch gets its own application name."""
    asked = said_by(dsn)
    asked |= primary_for_lookers(asked)
    asked["options"] = f"{asked.get('options') or ''} {_only(limit)}".strip()
    asked["application_name"] = f"{NAME} {uuid4().hex[:12]}"
    asked["client_encoding"] = "UTF8"  # whatever the database's encoding: Arrow and Parquet texts are UTF-8
    return address(asked)


def _only(limit: int) -> str:
    """Standard strings, because values are written into the statements. No parallel workers: a batch is already split,
    workers would be more processes, and wide rows cost more to pass on than to find. TCP's user timeout ends a lost
    connection without our help."""
    return (
        f"{OWN_PATH} {ONLY_LOOKING} -c statement_timeout={limit}s -c timezone=UTC"
        f" -c standard_conforming_strings=on -c max_parallel_workers_per_gather=0 -c tcp_user_timeout={limit}s"
    )


class ReadOverdue:
    """Ends sessions whose reader has stopped. Such a session blocks in sending, where a statement timeout seldom takes
    effect; meanwhile its snapshot holds back vacuum on all tables.

    ``uri``: from ``for_looking``; its application name belongs to one batch.
    """

    def __init__(self, uri: str, limit: float = LIMIT + SPARE):
        self._uri, self._limit = uri, limit
        self._name = said_by(uri)["application_name"]
        self._look_at = time.monotonic() + limit

    def ended(self) -> bool:
        """Whether a session was ended now. Call repeatedly: nothing is queried before one can be overdue."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + EVERY
        try:
            with postgresql().connect(self._uri, application_name=f"{NAME} limits") as connection:
                about = {"name": self._name, "limit": self._limit}
                ended = connection.value(postgresql().history.end_overdue(), about)
        except DatabaseError:  # the next check may find it, or there is no session
            return False
        if ended:
            log.warning("History: %s sessions waited %.0f s for their reader and were ended.", ended, self._limit)
        return bool(ended)


# Where rows are read: the queues' database, or a standby (PGQUEUE_HISTORY_URL) that has replayed the plan.
PATIENCE, BETWEEN = 10.0, 0.1  # seconds


class StandbyUnreachable(Exception):
    """The standby is behind the plan, does not answer, or is no standby: nothing was read."""


class PathOpen(Exception):
    """Another role could have the first statements of Arrow's driver run its code: nothing was read."""


def read_from(connection: Connection) -> str:
    """The DSN, once it shows all that ``connection`` (to the queues) has seen. Raises PathOpen, StandbyUnreachable.

    Batches are never planned on a standby: its snapshots do not list open writers.
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
    """Raises PathOpen. Before any setting, Arrow's driver queries the types, with an unqualified ``<>`` operator."""
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

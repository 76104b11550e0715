"""Deletes decided messages older than PGQUEUE_ARCHIVE_RETENTION_DAYS, after history, if kept, has read them."""

import logging
import time
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings

from pgqueue_admin.archive.retention import CHUNK, FiledEvents, as_of, prune, say_read
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import freshness, ledger
from pgqueue_admin.history.sources.tables import ARCHIVE
from pgqueue_admin.models import HistorySource, database_clock
from pgqueue_admin.models.queue_database import queue_database

log = logging.getLogger(__name__)
SECONDS = 10.0  # then the worker is free for other tasks; the next run continues


def prune_archive(seconds: float = SECONDS) -> int:
    """Prune, and return how many rows were deleted."""
    days, keeps_history = settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"], bool(settings.PGQUEUE["SPARK_MASTER"])
    if not (days or keeps_history):
        return 0
    with queue_database().write_session() as connection:
        if not connection.value(postgresql().history.has_archive()):
            return 0
        place = _place(connection)
        if keeps_history:
            _tell_others(connection, place)
        gone = _prune(connection, place, timedelta(days=days), time.monotonic() + seconds) if days else 0
    if gone:
        log.info("Archive: %s messages were decided longer ago than %s days.", gone, days)
    return gone


class PruneCursor(NamedTuple):
    """How far history has read this archive (``read`` empty: not at all), and which events are in files."""

    archive: str
    read: str
    filed: FiledEvents


def _place(connection: Connection) -> PruneCursor:
    """Read before anything is deleted: the ledger only moves forward."""
    (now,) = connection.all(postgresql().history.instant())
    known = freshness.of_archive(now.cluster, now.archive)
    return PruneCursor(as_of(now.cluster, now.archive), known.snapshot, FiledEvents(known.events, known.events_before))


def _tell_others(connection: Connection, place: PruneCursor) -> None:
    """Notify other consoles, which prune the same archive with another history or none."""
    archive = HistorySource.objects.filter(table=ARCHIVE).first()
    if archive is None:
        return
    name, read = settings.PGQUEUE["ENVIRONMENT"], place.read or ledger.BEFORE_ALL
    try:
        say_read(connection, archive.reader, name, place.archive, read, place.filed)
    except DatabaseError as error:
        log.warning("Archive: other consoles that prune it do not wait for this one's history: %s", error)


def _prune(connection: Connection, place: PruneCursor, kept_for: timedelta, deadline: float) -> int:
    read, filed = (place.read, place.filed) if settings.PGQUEUE["SPARK_MASTER"] else (None, None)
    if read == "":
        return 0
    gone = chunk = prune(connection, database_clock.now() - kept_for, read, place.archive, filed)
    while chunk == CHUNK and time.monotonic() < deadline:
        chunk = prune(connection, database_clock.now() - kept_for, read, place.archive, filed)
        gone += chunk
    return gone

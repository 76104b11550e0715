"""The archive is kept for ARCHIVE_DAYS: decided messages go then, behind the history where it is kept."""

import logging
import time
from datetime import timedelta

from django.conf import settings

from pgqueue_admin.archive.pruning import CHUNK, Filed, prune
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.pipeline import ledger
from pgqueue_admin.pipeline.sources.tables import ARCHIVE
from pgqueue_admin.records import clock
from pgqueue_admin.records.source import source

log = logging.getLogger(__name__)
SECONDS = 10.0  # then the worker is free for others; the next task goes on


def prune_archive(seconds: float = SECONDS) -> int:
    """How many rows went."""
    days = settings.PGQUEUE["ARCHIVE_DAYS"]
    if not days:
        return 0
    with source().writing() as connection:
        if not connection.value(postgresql().pipeline.has_archive()):
            return 0
        gone = _prune(connection, timedelta(days=days), time.monotonic() + seconds)
    if gone:
        log.info("Archive: %s messages were decided longer ago than %s days.", gone, days)
    return gone


def _prune(connection: Connection, kept_for: timedelta, deadline: float) -> int:
    read, filed = _read(connection) if settings.PGQUEUE["SPARK_MASTER"] else (None, None)
    if read == "":
        return 0
    gone = chunk = prune(connection, clock.now() - kept_for, read, filed)
    while chunk == CHUNK and time.monotonic() < deadline:
        chunk = prune(connection, clock.now() - kept_for, read, filed)
        gone += chunk
    return gone


def _read(connection: Connection) -> tuple[str, Filed]:
    """Asked before anything goes: the ledger moves on, never back."""
    (now,) = connection.all(postgresql().pipeline.instant())
    return ledger.read_to(ARCHIVE, now.cluster), Filed(*ledger.events_filed(ARCHIVE, now.cluster))

"""Computes fingerprints of dead messages that others archived; stores causes and adds up counts."""

import logging
import time

from django.conf import settings

from pgqueue_admin.archive import failure_tallies, fingerprints
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import failure_groups

log = logging.getLogger(__name__)
SECONDS = 5.0  # then the worker is free for other tasks; the next run continues


def catch_up() -> int:
    """Return how many fingerprints were computed; 0 if the role may not write, or without the engine's tables."""
    try:
        told = _tell()
        _remember()
        return told
    except DatabaseError as error:
        log.info("No fingerprints were computed: %s", error)
        return 0


def _remember() -> None:
    with queue_database().read_session() as connection:
        if fingerprints.are_kept(connection):
            failure_groups.remember(connection)


def _tell() -> int:
    deadline, told = time.monotonic() + SECONDS, 0
    with queue_database().write_session() as connection:
        while more := fingerprints.catch_up(connection, settings.PGQUEUE["OWN_CODE"]):
            told += more
            if more < fingerprints.BATCH or time.monotonic() > deadline:
                break
    return told


def add_up() -> int:
    """Return how many sums changed; 0 if the role may not write, or without the engine's tables."""
    try:
        with queue_database().write_session() as connection:
            return failure_tallies.fold(connection)
    except DatabaseError as error:
        log.info("Counts of failures were not added up: %s", error)
        return 0


def recount() -> int:
    """Return how many sums were wrong; 0 if the role may not write, or without the engine's tables."""
    try:
        with queue_database().write_session() as connection:
            found = failure_tallies.recount(connection)
    except DatabaseError as error:
        log.info("Failures were not counted anew: %s", error)
        return 0
    if found:
        log.warning("Counts of failures were wrong and are right again, %d of them: triggers were passed by", found)
    return found

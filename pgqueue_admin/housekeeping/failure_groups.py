"""Tells of which failure each dead message is, where others archived it."""

import logging
import time

from django.conf import settings

from pgqueue_admin.archive import fingerprints
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models.queue_database import queue_database

log = logging.getLogger(__name__)
SECONDS = 5.0  # then the worker is free for others; the next task goes on


def catch_up() -> int:
    """How many were told; none where the role may not write, or without the engine's tables."""
    try:
        return _tell()
    except DatabaseError as error:
        log.info("No fingerprints were told: %s", error)
        return 0


def _tell() -> int:
    deadline, told = time.monotonic() + SECONDS, 0
    with queue_database().writing() as connection:
        while more := fingerprints.catch_up(connection, settings.PGQUEUE["OWN_CODE"]):
            told += more
            if more < fingerprints.BATCH or time.monotonic() > deadline:
                break
    return told

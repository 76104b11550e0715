"""Finds operations that were started and goes on with them, whoever began."""

import logging
import time

import django.db

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import Operation, database_clock
from pgqueue_admin.services import operations

log = logging.getLogger(__name__)
SECONDS = 10.0  # then the worker is free to stop; the next task goes on


def run_started(seconds: float = SECONDS) -> None:
    """Every started operation, oldest first, until all are done or the time is over."""
    deadline = time.monotonic() + seconds
    for pk in Operation.objects.filter(state__in=operations.UNFINISHED).order_by("pk").values_list("pk", flat=True):
        try:
            operations.run(pk, until=lambda: time.monotonic() > deadline)
        except DatabaseError as error:
            _trouble(pk, str(error))
        except django.db.Error:
            raise
        except Exception as error:  # a fault of ours: no other operation may wait for it
            log.exception("Operation %s stumbled.", pk)
            _trouble(pk, f"{type(error).__name__}: {error}")


def _trouble(pk: int, error: str) -> None:
    """The operation stays as it is and is tried again; its page says what is in the way."""
    said = f"{database_clock.now():%Y-%m-%d %H:%M:%S} UTC: {error}"
    if Operation.objects.filter(pk=pk, last_error="").update(last_error=said):
        log.warning("Operation %s waits: %s", pk, error)

"""Finds operations that were started and continues them, whichever process began."""

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import django.db

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import Operation, database_clock
from pgqueue_admin.services.operations import runner, staged_retry

log = logging.getLogger(__name__)
T = TypeVar("T")
_PACING = Lock()
SECONDS = 10.0  # then the worker is free to stop; the next run continues


def run_started(seconds: float = SECONDS) -> None:
    """Run every started operation, oldest first, until all are done or the time is over."""
    deadline = time.monotonic() + seconds
    _go_by_plan(0.0)  # a step of each, before the unplanned ones take all the time
    unplanned = Operation.objects.filter(state__in=runner.UNFINISHED, plan=None)
    for pk in unplanned.order_by("pk").values_list("pk", flat=True):
        _try(pk, lambda number: runner.run(number, until=lambda: time.monotonic() > deadline))
    _go_by_plan(deadline)


def _go_by_plan(deadline: float) -> None:
    """Run each due step of staged retries, until the time is over or none sends. Only one thread of a process waits for
    the next step: the others stay free for other tasks.
    """
    if not _PACING.acquire(blocking=False):
        return
    try:
        while (wait := _soonest()) < staged_retry.LOOK_EVERY and time.monotonic() + wait < deadline:
            time.sleep(wait)
    finally:
        _PACING.release()


def _soonest() -> float:
    """Run a step of each; return in how many seconds the next is due."""
    waits = [_try(pk, staged_retry.step) for pk in staged_retry.open_plans()]
    return min((each for each in waits if each is not None), default=staged_retry.LOOK_EVERY)


def _try(pk: int, act: Callable[[int], T]) -> T | None:
    """Return None if the operation failed, which its page shows."""
    try:
        return act(pk)
    except DatabaseError as error:
        _trouble(pk, str(error))
    except django.db.Error:
        raise
    except Exception as error:  # our bug must not delay other operations
        log.exception("Operation %s stumbled.", pk)
        _trouble(pk, f"{type(error).__name__}: {error}")
    return None


def _trouble(pk: int, error: str) -> None:
    """Record the error for its page. The operation stays unchanged and is retried."""
    said = f"{database_clock.now():%Y-%m-%d %H:%M:%S} UTC: {error}"
    if Operation.objects.filter(pk=pk, last_error="").update(last_error=said):
        log.warning("Operation %s waits: %s", pk, error)

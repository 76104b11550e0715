"""Waits for conditions instead of fixed times: patient by default, strict where the product promises a time."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from pgqueue_admin.dialects import Connection

T = TypeVar("T")
PATIENCE = float(os.environ.get("PGQUEUE_TEST_PATIENCE", "60"))  # seconds: a busy machine is no failure
NOISE = 3  # two busy cores take up to so many times the promised time


def until(condition: Callable[[], T | None], seconds: float = PATIENCE, what: str = "", every: float = 0.02) -> T:
    """Return the first true result of ``condition``. Raise AssertionError with ``what`` if there is none in time.

    ``seconds`` extends the limit beyond PATIENCE; it never shortens it. ``every``: seconds between two checks.
    """
    deadline = time.monotonic() + max(seconds, PATIENCE)
    pause = threading.Event()  # never set: its wait yields the processor between two checks
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {max(seconds, PATIENCE)} s: {what or condition}"
        pause.wait(every)
    return answer


def gathered(more: Callable[[], Iterable[T]], enough: Callable[[list[T]], bool]) -> list[T]:
    """Collect what ``more`` returns until it is ``enough``."""
    found: list[T] = []

    def look() -> bool:
        found.extend(more())
        return enough(found)

    until(look)
    return found


def within(promised: float, condition: Callable[[], T | None], what: str = "", since: float | None = None) -> T:
    """``until`` for a time that the product promises, counted from ``since`` (monotonic) or from now.

    Fails if it takes NOISE times as long, and reports the time taken.
    """
    began = time.monotonic() if since is None else since
    answer = until(condition, what=what)
    took = time.monotonic() - began
    assert took < promised * NOISE, f"took {took:.1f} s, promised are {promised} s: {what or condition}"
    return answer


def locks_waited_for(connection: Connection) -> int:
    """Number of sessions of this database that wait for an advisory lock."""
    return int(
        connection.value(
            "select count(*) from pg_locks where locktype = 'advisory' and not granted"
            " and database = (select oid from pg_database where datname = current_database())"
        )
    )


def held_up(connection: Connection) -> int:
    """Number of sessions that wait for a lock, including row locks, which belong to no database.

    Reads pg_locks, because pg_stat_activity shows the same state for a whole transaction.
    """
    here = "coalesce(database = (select oid from pg_database where datname = current_database()), true)"
    return int(connection.value(f"select count(*) from pg_locks where not granted and {here}"))

"""Waits on conditions, never on time: patient for what just must happen, strict for what the product promises."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from pgqueue_admin.dialects import Connection

T = TypeVar("T")
PATIENCE = float(os.environ.get("PGQUEUE_TEST_PATIENCE", "60"))  # seconds: a machine that is busy is no failure
NOISE = 3  # two busy cores take up to so many times what is promised of a machine that has time


def until(condition: Callable[[], T | None], seconds: float = PATIENCE, what: str = "") -> T:
    """The first true answer of ``condition``; AssertionError with ``what`` when there is none.

    ``seconds`` is how long that may take where it may take longer than PATIENCE; it is never less.
    """
    deadline = time.monotonic() + max(seconds, PATIENCE)
    pause = threading.Event()  # never set: its wait yields the processor between two looks
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {max(seconds, PATIENCE)} s: {what or condition}"
        pause.wait(0.02)
    return answer


def gathered(more: Callable[[], Iterable[T]], enough: Callable[[list[T]], bool]) -> list[T]:
    """What ``more`` gives, again and again, until it is ``enough``."""
    found: list[T] = []

    def look() -> bool:
        found.extend(more())
        return enough(found)

    until(look)
    return found


def within(promised: float, condition: Callable[[], T | None], what: str = "", since: float | None = None) -> T:
    """``until``, for what the product promises to do in so many seconds, counted from ``since`` (monotonic) or now.

    Broken when it takes NOISE times as long; what it took is told.
    """
    began = time.monotonic() if since is None else since
    answer = until(condition, what=what)
    took = time.monotonic() - began
    assert took < promised * NOISE, f"took {took:.1f} s, promised are {promised} s: {what or condition}"
    return answer


def locks_waited_for(connection: Connection) -> int:
    """How many sessions of its database wait for an advisory lock."""
    return int(
        connection.value(
            "select count(*) from pg_locks where locktype = 'advisory' and not granted"
            " and database = (select oid from pg_database where datname = current_database())"
        )
    )


def held_up(connection: Connection) -> int:
    """How many sessions wait for a lock, of a row (which is of no database) or a table as well.

    Asked of pg_locks: pg_stat_activity says the same all through a transaction.
    """
    here = "coalesce(database = (select oid from pg_database where datname = current_database()), true)"
    return int(connection.value(f"select count(*) from pg_locks where not granted and {here}"))

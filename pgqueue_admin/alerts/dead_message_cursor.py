"""Reads the archive of dead messages: deaths since the cursor, and messages that are dead now.

The cursor is a snapshot of the database, not a time or a number. A row whose transaction was open at the last read is
found by the difference of two snapshots, however late it commits.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pgqueue_admin.archive import retention
from pgqueue_admin.archive.retention import Reader
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError, SchemaMissing, TableMissing, TimedOut
from pgqueue_admin.models import Alert, Cursor, database_clock
from pgqueue_admin.models.queue_database import QueueDatabase

log = logging.getLogger("pgqueue.alerts")
NAME = "alerter"
MOVED_AT_LEAST = timedelta(seconds=30)  # an old snapshot makes each read slower
SHARE = 50  # counting may take one second in so many
MOST_CAUSES = 20  # of a queue that have their own warnings; all others share one
OLD_STOCK = timedelta(minutes=10)  # after the first start, while an error queue's old failures are still taken in


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Dead messages of one queue and cause, with their number."""

    queue: str
    cause: str  # empty: several causes without warnings of their own
    count: int
    first_at: datetime
    causes: int = 1


@dataclass(frozen=True, slots=True)
class NewDeaths(DeadGroup):
    """Messages that died since the cursor. The ``old`` ones count as notified: an OldDeaths warning covers them."""

    old: int = 0
    types: list[str] = field(default_factory=list)  # of messages, three at most


@dataclass(frozen=True, slots=True)
class OldDeaths:
    """Messages that had failed long before they were archived, as a rule from an error queue."""

    came_from: str
    count: int


@dataclass(frozen=True, slots=True)
class CursorReading:
    deaths: list[NewDeaths] = field(default_factory=list)
    piles: list[OldDeaths] = field(default_factory=list)  # of these deaths
    lying: list[DeadGroup] | None = None  # None: not readable, see ``error``
    error: str = ""
    silent: list[Reader] = field(default_factory=list)  # consoles for whose history pruning no longer waits


@contextmanager
def cursor() -> Iterator[Cursor]:
    """Lock the cursor in the caller's transaction: a second alerter waits, then continues from there."""
    yield Cursor.objects.select_for_update().get_or_create(name=NAME)[0]


class DeadMessageCursor:
    """Deaths are read each time, by an index. Dead messages are counted, the less often the longer a count takes."""

    def __init__(self) -> None:
        self._lying: list[DeadGroup] = []
        self._count_at = 0.0
        self._too_slow: TimedOut | None = None  # in the last count: unknown until the next

    def read(self, source: QueueDatabase, cursor: Cursor) -> CursorReading:
        deaths: list[NewDeaths] = []
        piles: list[OldDeaths] = []
        try:
            with source.read_session() as connection, connection.transaction():
                connection.run(source.dialect.alerts.one_snapshot())
                named = NamedCauses()
                deaths, piles = _read_on(connection, source.dialect.alerts, cursor, named)
                lying = self._count(connection, source.dialect.alerts, deaths, named)
                return CursorReading(deaths, piles, lying, silent=retention.silent(connection))
        except (SchemaMissing, TableMissing):
            return CursorReading(error="The engine's tables are not in the queue database: run manage.py engine_schema")
        except DatabaseError as error:
            return CursorReading(deaths, piles, error=str(error).splitlines()[0])

    def _count(
        self, connection: Connection, statements: Any, deaths: list[NewDeaths], named: "NamedCauses"
    ) -> list[DeadGroup]:
        if time.monotonic() >= self._count_at:
            self._lying = self._count_now(connection, statements, named.beside(deaths))
        elif self._too_slow:
            raise self._too_slow.with_traceback(None)
        else:
            self._lying = _together(self._lying, deaths)
        return self._lying

    def _count_now(self, connection: Connection, statements: Any, named: dict[str, Any]) -> list[DeadGroup]:
        """Count. A count that timed out delays the next one like any other."""
        began = time.monotonic()
        try:
            lying = [DeadGroup(*row) for row in connection.all(statements.lying(named=statements.named), named)]
        except TimedOut as error:
            self._too_slow = error
            self._rest(began)
            raise
        self._too_slow = None
        self._rest(began)
        return lying

    def _rest(self, began: float) -> None:
        self._count_at = began + SHARE * (time.monotonic() - began)


class NamedCauses:
    """Causes with an open warning keep it, however many other causes there are."""

    def __init__(self) -> None:
        open_ones = Alert.objects.filter(kind="dead_message", resolved_at=None).exclude(cause="")
        self._open = set(open_ones.values_list("queue", "cause"))

    def beside(self, deaths: list[NewDeaths]) -> dict[str, Any]:
        named = sorted(self._open | {(died.queue, died.cause) for died in deaths if died.cause})
        return {"queues": [queue for queue, _ in named], "causes": [cause for _, cause in named], "most": MOST_CAUSES}


def _together(lying: list[DeadGroup], deaths: list[NewDeaths]) -> list[DeadGroup]:
    """Add new deaths to the last count, until the next count."""
    groups = {(group.queue, group.cause): group for group in lying}
    for died in deaths:
        before = groups.get((died.queue, died.cause))
        first_at = before.first_at if before else died.first_at
        count = died.count + (before.count if before else 0)
        causes = max(died.causes, before.causes if before else 1)
        groups[died.queue, died.cause] = DeadGroup(died.queue, died.cause, count, first_at, causes)
    return list(groups.values())


def _read_on(
    connection: Connection, statements: Any, cursor: Cursor, named: NamedCauses
) -> tuple[list[NewDeaths], list[OldDeaths]]:
    here: Any = connection.one(statements.here())
    if cursor.position.get("database") != here.database:
        _begin(cursor, here)
        return [], []
    if _end(here.snapshot) < _end(cursor.position["snapshot"]):
        log.warning("The queues' database was set back in time: what dies from there on is news.")
        cursor.position = {**cursor.position, "snapshot": here.snapshot}
        cursor.save()
    began = datetime.fromisoformat(cursor.position["began"])
    until = {"since": cursor.position["snapshot"], "began": began, "old_stock_until": began + OLD_STOCK}
    died_since = statements.died_since(deaths=statements.deaths, named=statements.named)
    rows = connection.all(died_since, until | named.beside([]))
    deaths = [NewDeaths(*row[1:]) for row in rows if row.queue is not None]
    piles = []
    if any(died.old for died in deaths):
        piles = [OldDeaths(*row) for row in connection.all(statements.taken_over(deaths=statements.deaths), until)]
    if deaths or database_clock.now() - cursor.moved_at > MOVED_AT_LEAST:
        cursor.position = {**cursor.position, "snapshot": rows[0].snapshot}
        cursor.save()
    return deaths, piles


def _end(snapshot: str) -> int:
    """Return the first transaction that had not begun. It only grows, except in a database restored from a backup."""
    return int(snapshot.split(":")[1])


def _begin(cursor: Cursor, here: Any) -> None:
    """At the first start, existing dead messages count as notified: a seeded archive would flood people with mails."""
    if cursor.position:
        log.warning("The queues are in another database than before: deaths there count as mailed.")
    cursor.position = {"database": here.database, "snapshot": here.snapshot, "began": here.at.isoformat()}
    cursor.save()

"""Results of a staged retry so far: messages that left their queues, and reasons to stop or hold."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pgqueue_admin.archive.store import CappedCount
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, TableMissing
from pgqueue_admin.dialects.lease_store import QUEUE as LEASE_QUEUE
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Operation, RetryPlan
from pgqueue_admin.models.queue_database import database_of, is_watched, queue_database
from pgqueue_admin.monitor import depth, discovery
from pgqueue_admin.services.operations.targets import parsed

PAGE = 2_000  # rows that are looked up at once
_PAGES = 10  # looked up for an operation's page


@dataclass(frozen=True, slots=True)
class Deaths:
    """``of_the_tried``: in the first stage. ``worst``: the most in any run of so many sent, in all or to one queue."""

    of_the_tried: int
    worst: int
    is_of_one_queue: bool


@dataclass(frozen=True, slots=True)
class ReadyInTarget:
    """The highest ready count of the targets; ``queue`` names it. None: not counted, see ``blocking_reason``."""

    queue: str
    number: int | None
    blocking_reason: str = ""


@dataclass(frozen=True, slots=True)
class FirstStage:
    """Messages of the first stage sent, those that wait, and the seconds since the last was acted on."""

    sent: int
    waiting: int
    seconds: float


def note_left(pk: int) -> list[str]:
    """Record which sent rows have left their queues; return queues that could not be read, with why.

    Reads in pages, so the size of the set does not matter. Raises DatabaseDown.
    """
    position, troubles = 0, dict[str, str]()
    while rows := _sent(pk, position):
        position = rows[-1].position
        if gone := _gone(rows, troubles):
            with queue_database().write_session() as connection:
                connection.run(postgresql().operation.left(), {"operation_id": pk, "positions": gone})
        if len(rows) < PAGE:
            break
    return list(troubles.values())


def still_waiting(pk: int) -> CappedCount:
    """Count sent messages still in their queues, up to the first page with any; write nothing.

    The count is a lower bound if some were not looked up, or are in queues that cannot be read.
    """
    position, waiting, troubles = 0, 0, dict[str, str]()
    for _ in range(_PAGES):
        rows = _sent(pk, position)
        gone = _gone(rows, troubles)
        waiting += sum(row.target not in troubles for row in rows) - len(gone)
        if len(rows) < PAGE:
            return CappedCount(waiting, bool(troubles))
        if waiting:
            break
        position = rows[-1].position
    return CappedCount(waiting, True)


def deaths(connection: Connection, plan: RetryPlan) -> Deaths:
    asked = {
        "operation_id": plan.pk,
        "judged_from": plan.judged_from,
        "tried": plan.tried,
        "others": max(0, plan.stop_of - 1),
    }
    row = connection.one(postgresql().operation.deaths(), asked)
    assert row is not None
    return Deaths(row.of_the_tried, row.worst, row.is_of_one_queue)


def tried(connection: Connection, plan: RetryPlan) -> FirstStage:
    asked = {"operation_id": plan.pk, "last": plan.tried}
    row = connection.one(postgresql().operation.tried(), asked)
    assert row is not None
    return FirstStage(row.sent, row.waiting, row.seconds or 0.0)


def most_ready(operation: Operation, cap: int) -> ReadyInTarget:
    """Return the highest ready count, by the function that measures queues for every page."""
    found = ReadyInTarget("", 0)
    for address in targets_of(operation):
        ready = _ready(address, cap)
        if ready.number is None:
            return ready
        if ready.number >= (found.number or 0):
            found = ready
    return found


def targets_of(operation: Operation) -> set[Address]:
    """Return the queues that it may send to; items without a queue name died in the lease queue."""
    named = parsed(each or postgresql().canonical(LEASE_QUEUE) for each in operation.queues)
    return {each for each in named if each == LEASE_QUEUE or is_watched(each)}


def _ready(address: Address, cap: int) -> ReadyInTarget:
    try:
        with database_of(address).read_session(address) as connection:
            table = discovery.find_one(connection, address)
            if table is None:  # nothing can be sent there either: each such message fails with its reason
                return ReadyInTarget(address.table, 0)
            seen = depth.measure(connection, table, cap=max(cap, depth.CAP))
            return ReadyInTarget(address.table, seen.ready, "" if seen.ready is not None else "it cannot be counted")
    except DatabaseError as error:
        _raise_for_the_first(error, address)
        return ReadyInTarget(address.table, None, str(error))


def _raise_for_the_first(error: DatabaseError, queue: Address) -> None:
    """Raise if the first database is down: without it nothing is known. Others concern only their own queues."""
    if isinstance(error, DatabaseDown) and not database_of(queue).alias:
        raise error


def _sent(pk: int, after: int) -> list[Any]:
    with queue_database().read_session() as connection:
        asked = {"operation_id": pk, "after": after, "limit": PAGE}
        return connection.all(postgresql().operation.sent_waiting(), asked)


def _gone(rows: list[Any], troubles: dict[str, str]) -> list[int]:
    """Return positions of rows that were looked up and are gone. A queue that cannot be read adds none."""
    by_target = defaultdict(list)
    for row in rows:
        by_target[row.target].append(row)
    gone: list[int] = []
    for target, sent in by_target.items():
        try:
            there = _there(target, [row.sent_as for row in sent])
        except DatabaseError as error:
            _raise_for_the_first(error, next(iter(parsed([target]))))
            troubles[target] = f"{target} cannot be looked into: {error}"
            continue
        gone += [row.position for row in sent if row.sent_as not in there]
    return gone


def _there(target: str, ids: list[str]) -> set[str]:
    """Raises NotLookedInto if a read would run code of another role, TableMissing, DatabaseError."""
    address = next(iter(parsed([target])))
    database = database_of(address)
    if not database.dialect.indexes_ids:
        raise DatabaseError("no index of it has the ids of messages.")
    with database.read_session(address) as connection:
        if discovery.readable(connection, address) is None:
            raise TableMissing(f"there is no queue table {address.table} now.")
        if address == LEASE_QUEUE:
            rows = connection.all(postgresql().operation.still_in_lease_queue(), {"ids": ids})
        else:
            asked = {"ids": [UUID(each) for each in ids]}
            rows = connection.all(database.dialect.operation.still_there(table=address), asked)
    return {row[0] for row in rows}

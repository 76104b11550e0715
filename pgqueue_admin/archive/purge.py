"""Discards waiting messages of a queue into the archive, one chunk per transaction: nothing is ever deleted."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from pgqueue_admin.archive import call_back, held_row
from pgqueue_admin.archive.call_back import CallBackAct
from pgqueue_admin.archive.held_row import HeldRow, SeenRow
from pgqueue_admin.archive.messages import MOST_HEADERS, clean
from pgqueue_admin.archive.move_to_archive import DISCARDED, MoveReason, discard_held
from pgqueue_admin.archive.row_move import RowPlace
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import RowsDropped
from pgqueue_admin.dialects.lease_store import QUEUE as LEASE_QUEUE
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.wire.message import IncomingMessage

_LOWEST = -(2**63)


class NotAsCounted(Exception):
    """The table or its numbering was replaced since the count: its messages may be newer."""


class CountedQueue(NamedTuple):
    """A queue's message count, its range of numbers, and the table's identity. ``last``: the sequence's last value,
    None if unknown. ``oid`` 0: unknown, for a purge that an older version counted."""

    number: int
    up_to: int
    lowest: int = _LOWEST
    oid: int = 0
    storage: str = ""
    last: int | None = None


def look(connection: Connection, queue: Address) -> CountedQueue:
    """Count without locks. Raises DatabaseError."""
    table = _identity(connection, queue)  # first: changes after this are detected later
    row = connection.one(_sql().waiting_leases() if queue == LEASE_QUEUE else _sql().waiting(table=queue))
    if not row or not row.number or not table:
        return CountedQueue(0, 0)
    return CountedQueue(row.number, row.up_to, row.lowest, table.oid, table.storage or "", table.last)


def left(connection: Connection, queue: Address, counted: CountedQueue) -> int:
    query = _sql().left_leases() if queue == LEASE_QUEUE else _sql().left(table=queue)
    return int(connection.value(query, {"up_to": counted.up_to, "lowest": counted.lowest}))


def chunk(
    connection: Connection,
    queue: Address,
    counted: CountedQueue,
    limit: int,
    who: str,
    own_code: tuple[str, ...],
    operation: int,
) -> list[int]:
    """Discard one chunk in the caller's transaction. Return the archive ids; empty if nothing is left.

    Raises NotMovable if that would run other roles' code, NotAsCounted, DatabaseError.
    """
    if queue == LEASE_QUEUE:
        return _lease_chunk(connection, counted, limit, who, operation)
    filled = ("seq", *held_row.columns(connection, queue))
    asked = {"up_to": counted.up_to, "lowest": counted.lowest, "limit": limit, "most": MOST_HEADERS}
    with held_row.only_tables(connection, queue):
        rows = connection.all(_sql().take(table=queue, filled=filled), asked)
    insist_as_counted(queue, counted, _identity(connection, queue))  # while rows are locked, so it stays true
    held = [_held(queue, row) for row in rows]
    why_moved = MoveReason(who, "", "", _said(queue, who))
    return discard_held(connection, held, why_moved, own_code, operation) if held else []


def _lease_chunk(connection: Connection, counted: CountedQueue, limit: int, who: str, operation: int) -> list[int]:
    asked = {"up_to": counted.up_to, "lowest": counted.lowest, "limit": limit}
    with held_row.only_tables(connection, LEASE_QUEUE):
        held = connection.all(_sql().hold_leases(), asked)
    insist_as_counted(LEASE_QUEUE, counted, _identity(connection, LEASE_QUEUE))
    said = _said(LEASE_QUEUE, who)
    return _discard_leases(connection, held, who, said, operation) if held else []


def _discard_leases(connection: Connection, held: Sequence[Any], who: str, details: str, operation: int) -> list[int]:
    """``held``: id and retried_from of locked rows. Return the archive ids. No death is notified.

    A retry's message goes back to its own archive row, as discarded. Raises RowsDropped, DatabaseError.
    """
    formers = _taken_back(connection, held, CallBackAct(who, DISCARDED, DISCARDED, operation))
    ids = [row.id for row in held if row.retried_from not in formers]
    taken = [row.id for row in connection.all(_sql().take_leases(), _about(ids, who, details))] if ids else []
    if len(taken) != len(ids):
        raise RowsDropped(f"It gave {len(taken)} of {len(ids)}, and that was undone.")
    if taken:
        connection.run(_sql().set_leases_aside(), {"ids": taken, "who": clean(who), "operation": operation})
        event = {"ids": taken, "targets": [None] * len(taken), "who": clean(who), "verb": DISCARDED}
        connection.run(postgresql().archive.note(), {**event, "operation": operation})
    return [*formers, *taken]


def _taken_back(connection: Connection, held: Sequence[Any], back: CallBackAct) -> list[int]:
    """The archive ids that went back to their rows. An edited message is another message: its retry is noted as not
    sent."""
    numbers = {row.retried_from: str(row.id) for row in held if row.retried_from is not None}
    sent = call_back.sent_by_ids(connection, list(numbers)) if numbers else []
    outcomes = call_back.take_back(connection, sent, back)
    others = [row for row in sent if outcomes[row.id].result != "done" and row.sent_as == numbers[row.id]]
    call_back.note_not_sent(connection, others, back)
    return [each for each, outcome in outcomes.items() if outcome.result == "done"]


def _about(ids: list[int], who: str, details: str) -> dict[str, Any]:
    queue = postgresql().canonical(LEASE_QUEUE)
    return {"ids": ids, "handled_by": (clean(who) or "")[:50], "details": clean(details), "queue": queue}


def _said(queue: Address, who: str) -> str:
    return f"Purged from {queue.table} by {who} while it waited."


def insist_as_counted(queue: Address, counted: CountedQueue, now: Any) -> None:
    """``now``: the table's present identity; None if it is gone. Raises NotAsCounted."""
    if counted.oid and (now is None or not _is_same(counted, now)):
        raise NotAsCounted(
            f"{queue.table} was made anew, emptied, rewritten or numbered anew since its messages were counted: what"
            " is there now may have come later. Count it again."
        )


def _is_same(counted: CountedQueue, now: Any) -> bool:
    if (now.oid, now.storage or "") != (counted.oid, counted.storage):
        return False
    return counted.last is None or (now.last is not None and now.last >= counted.last)


def _identity(connection: Connection, queue: Address) -> Any:
    numbered_by = "id" if queue == LEASE_QUEUE else "seq"
    asked = {"schema": queue.schema, "name": queue.table, "numbered_by": numbered_by}
    return connection.one(_sql().identity(), asked)


def _held(queue: Address, row: Any) -> HeldRow:
    seen = SeenRow(queue, UUID(row.id), row.seq)
    return HeldRow(seen, RowPlace(row.part, row.place), IncomingMessage.of_row(queue, row), {})


def _sql() -> Any:
    return postgresql().purge

"""Moves rows between two queues of another database, in one transaction that is marked here before it commits."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pgqueue_admin.archive import crossings
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import CrossingStore, TakenRow
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, Deadlock, RowsDropped
from pgqueue_admin.dialects.waiting_store import MovingStore


class MovedRows(NamedTuple):
    """``crossing``: None if nothing was moved. ``refused``: the reason, for each row that was not moved."""

    crossing: int | None
    rows: Sequence[TakenRow]
    refused: dict[TakenRow, str]


class MoveStores(NamedTuple):
    """The stores of the other database. ``rows``: the store of the table that the rows leave."""

    crossings: CrossingStore
    rows: MovingStore


def carry(
    here: Connection,
    there: Session,
    beside: Session,
    stores: MoveStores,
    route: tuple[Address, Address],
    who: str,
    take: Callable[[Session], Sequence[TakenRow]],
    intend: Callable[[int, Sequence[TakenRow]], None],
) -> MovedRows:
    """Move rows there. Raises DatabaseError: the move is undone, or its outcome is still to be queried. ``beside``:
    another session of that database. ``route``: source and target. ``intend``: called before the commit there.

    No message content leaves that database, so nothing can be lost between the two.
    """
    queue, target = route
    with there.transaction():
        rows = take(there)
        if not rows:
            return MovedRows(None, (), {})
        mark = stores.crossings.mark(there)
        refused = {row: why for row in rows if (why := _refusal(there, stores, queue, row, target))}
        if not (moved := [row for row in rows if row not in refused]):
            return MovedRows(None, (), refused)
        with here.transaction():
            number = crossings.move(here, target, {row.id: row.seq for row in moved}, who)
        intend(number, moved)
        stores.crossings.pin(beside)
        crossing = crossings.get(here, number)
        if crossing is None:
            raise crossings.CrossingOvertaken
        crossings.leave(here, crossing, mark, {})
    return MovedRows(number, moved, refused)


def _refusal(there: Session, stores: MoveStores, queue: Address, row: TakenRow, target: Address) -> str:
    """Move one row, or return why not."""
    try:
        with there.transaction():
            if (taken := stores.rows.move(there, queue, row, target)) != 1:
                raise RowsDropped(f"{target.table} took {taken} of 1, as of one without a body, and that was undone.")
            if (gone := stores.crossings.remove(there, queue, [row])) != 1:
                raise RowsDropped(f"{queue.table} gave {gone} of 1, and that was undone.")
    except (DatabaseDown, Deadlock):
        raise
    except DatabaseError as error:
        return str(error)
    return ""

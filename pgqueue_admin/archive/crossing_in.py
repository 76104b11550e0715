"""Rows of another database's queue cross into the archive: copy them here, delete them there, then archive them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pgqueue_admin.archive import crossings, move_to_archive, row_move
from pgqueue_admin.archive.crossings import Crossing
from pgqueue_admin.archive.error_queue_parser import read
from pgqueue_admin.archive.held_row import HeldRow, SeenRow
from pgqueue_admin.archive.move_to_archive import MoveReason
from pgqueue_admin.archive.row_move import RowPlace
from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import CrossingStore, TakenRow
from pgqueue_admin.dialects.errors import RowsDropped
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.wire.message import IncomingMessage

BATCH = 200
MOST = 16_000_000  # bytes of headers and bodies, but at least one row
COPIES = Address("messages", "crossing_copy")


class TakenRows(NamedTuple):
    """``crossing``: None if the queue was empty. ``full``: there may be more, so ask again."""

    crossing: int | None
    rows: Sequence[TakenRow]
    full: bool


class TakingIn(NamedTuple):
    """Values of the crossing's own columns."""

    alias: str
    who: str = crossings.INGESTER
    operation: int | None = None
    restores: bool = False


NOTHING = TakenRows(None, (), False)
Take = Callable[[Session], Sequence[TakenRow]]
Intend = Callable[[int, Sequence[TakenRow]], None]


def carry(
    here: Connection,
    there: Session,
    beside: Session,
    store: CrossingStore,
    queue: Address,
    meant: TakingIn,
    take: Take,
    intend: Intend = lambda crossing, rows: None,
) -> TakenRows:
    """Take one batch out, in one transaction there, and record its mark here before it commits. Raises DatabaseError.
    ``beside``: another session of that database.

    The rows stay locked there while they are copied. Until ``finish`` the copies are no archived messages. The caller's
    session holds the crossing's lock (``crossings.all_let_go``). ``take`` selects the rows, ``intend`` is told the
    crossing; both are called before any row is deleted.
    """
    with there.transaction():
        rows = take(there)
        if not rows:  # polled each second: without a write the transaction consumes no transaction id
            return NOTHING
        mark = store.mark(there)
        crossing = _copied(here, there, store, queue, rows, meant)
        intend(crossing.id, rows)
        if (gone := store.remove(there, queue, rows)) != len(rows):
            raise RowsDropped(f"It gave {gone} of {len(rows)} to the archive, and that was undone.")
        store.pin(beside)
        crossings.leave(here, crossing, mark, {})
    return TakenRows(crossing.id, rows, True)


def _copied(
    here: Connection, there: Session, store: CrossingStore, queue: Address, rows: Sequence[TakenRow], meant: TakingIn
) -> Crossing:
    sql = postgresql().crossing_intent
    with here.transaction():
        crossing = crossings.take_in(here, *meant)
        for row in rows:
            found = {"found_schema": queue.schema, "found_table": queue.table, "body": store.body(there, queue, row)}
            kept = {"id": row.id, "expires": row.expires, "headers": row.headers, "seq": row.seq}
            here.run(sql.copy(), {"crossing": crossing.id, **found, **kept})
    return crossing


def finish(
    here: Connection,
    crossing: Crossing,
    dialect: Dialect,
    own_code: tuple[str, ...] = (),
    home_of: Callable[[Address], Address] = lambda table: table,
) -> list[int]:
    """After the commit there: archive the copies in the caller's transaction and return the archive ids. If several
    processes try, one succeeds.

    ``dialect``: of that database; it parses addresses in headers. ``home_of``: the queue whose messages a table holds,
    for rows that a person took out.
    """
    sql = postgresql().crossing_intent
    if here.one(sql.lock(), {"id": crossing.id}) is None:
        return []
    rows = here.all(sql.copies(), {"id": crossing.id})
    queue = Address(rows[0].found_schema, rows[0].found_table)
    if crossing.is_by_hand:
        ids = _set_aside(here, crossing, SeenRow(queue, rows[0].id, queue=home_of(queue)), rows, own_code)
    else:
        meant = [(RowPlace(row.part, row.place), read(row.headers, row.id, queue, dialect)) for row in rows]
        ids = row_move.move(here, COPIES, meant, own_code, ingested_from=queue)
    here.run(sql.end(), {"id": crossing.id})
    return ids


def _set_aside(
    here: Connection, crossing: Crossing, seen: SeenRow, rows: Sequence[Any], own_code: tuple[str, ...]
) -> list[int]:
    """Archive waiting messages that did not die: discarded or dead, as the person chose. ``seen``: one of them."""
    held = [_held(seen, row) for row in rows]
    who, table = crossing.who, seen.table.table
    if crossing.restores:
        did = "Purged from" if crossing.operation else "Discarded from"
        why = MoveReason(who, "", "", f"{did} {table} by {who} while it waited.")
        return move_to_archive.discard_held(here, held, why, own_code, crossing.operation, copies=COPIES)
    why = MoveReason(who, "", "", f"Moved out of {table} by {who} while it waited: it had not failed.")
    return move_to_archive.move_out_held(here, held, why, own_code, copies=COPIES)


def _held(one: SeenRow, row: Any) -> HeldRow:
    seen = one._replace(row_id=row.id, seq=row.seq)
    message = IncomingMessage.of_row(seen.home, WaitingRow(str(row.id), row.seq, row.expired, row.headers, row.body))
    return HeldRow(seen, RowPlace(row.part, row.place), message, {})


class WaitingRow(NamedTuple):
    id: str
    seq: int
    expired: bool
    headers: str
    body: bytes | None

"""Rows of an error queue of another database cross into the archive: copied here, taken out there, then archived."""

from typing import NamedTuple

from pgqueue_admin.archive import crossings, row_move
from pgqueue_admin.archive.crossings import Crossing
from pgqueue_admin.archive.error_queue_parser import read
from pgqueue_admin.archive.row_move import RowPlace
from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import CrossingStore, TakenRow
from pgqueue_admin.dialects.errors import RowsDropped
from pgqueue_admin.dialects.postgresql import postgresql

BATCH = 200
MOST = 16_000_000  # bytes of headers and bodies, and one row in any case
COPIES = Address("messages", "crossing_copy")


class Taken(NamedTuple):
    """``crossing``: None where nothing lay there. ``full``: there may be more, so ask again."""

    crossing: int | None
    rows: int
    full: bool


def carry(
    here: Connection, there: Session, beside: Session, store: CrossingStore, queue: Address, alias: str, who: str
) -> Taken:
    """Take a batch out of it, in one transaction there, which is marked here before it ends. Raises DatabaseError.
    ``beside``: another session there.

    The rows are held there while they are copied, so that nobody else takes them; until ``finish`` the copies are no
    archived messages. The caller's session has the crossing in hand (``crossings.all_let_go``).
    """
    with there.transaction():
        rows = store.take(there, queue, BATCH, MOST)
        if not rows:  # asked each second: only what writes there may cost it a transaction's number
            return Taken(None, 0, False)
        mark = store.mark(there)
        crossing = _copied(here, there, store, queue, rows, alias, who)
        if (gone := store.remove(there, queue, rows)) != len(rows):
            raise RowsDropped(f"It gave {gone} of {len(rows)} to the archive, and that was undone.")
        store.pin(beside)
        crossings.leave(here, crossing, mark, {})
    return Taken(crossing.id, len(rows), True)


def _copied(
    here: Connection,
    there: Session,
    store: CrossingStore,
    queue: Address,
    rows: list[TakenRow],
    alias: str,
    who: str,
) -> Crossing:
    sql = postgresql().crossing_intent
    with here.transaction():
        crossing = crossings.take_in(here, alias, who)
        for row in rows:
            found = {"found_schema": queue.schema, "found_table": queue.table, "body": store.body(there, queue, row)}
            kept = {"id": row.id, "expires": row.expires, "headers": row.headers, "seq": row.seq}
            here.run(sql.copy(), {"crossing": crossing.id, **found, **kept})
    return crossing


def finish(here: Connection, crossing: Crossing, dialect: Dialect, own_code: tuple[str, ...] = ()) -> list[int]:
    """They are taken out: in the caller's transaction they become archived messages, of these ids. Of several who
    finish it one does. ``dialect``: of that database, which reads the addresses in its headers.
    """
    sql = postgresql().crossing_intent
    if here.one(sql.lock(), {"id": crossing.id}) is None:
        return []
    rows = here.all(sql.copies(), {"id": crossing.id})
    ingested_from = Address(rows[0].found_schema, rows[0].found_table)
    meant = [(RowPlace(row.part, row.place), read(row.headers, row.id, ingested_from, dialect)) for row in rows]
    ids = row_move.move(here, COPIES, meant, own_code, ingested_from=ingested_from)
    here.run(sql.end(), {"id": crossing.id})
    return ids

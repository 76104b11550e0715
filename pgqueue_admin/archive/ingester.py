"""Moves error queues' messages into the archive, one batch per transaction (C4)."""

from typing import Any, NamedTuple

from pgqueue_admin.archive import held_row, row_move
from pgqueue_admin.archive.error_queue_parser import read
from pgqueue_admin.archive.messages import MOST_HEADERS
from pgqueue_admin.archive.row_move import RowPlace
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql

BATCH = 200


class Ingested(NamedTuple):
    """What one batch moved; ``full``: there may be more, so ask again."""

    dead: int
    control: int
    full: bool

    @property
    def moved(self) -> int:
        return self.dead + self.control


def ingest(
    connection: Connection, error_address: Address, limit: int = BATCH, own_code: tuple[str, ...] = ()
) -> Ingested:
    """Move up to ``limit`` rows, exactly as received. After a DatabaseError nothing has moved; one is raised if
    deleting rows would run other roles' code."""
    with connection.transaction():
        rows = connection.all(_sql().take(table=error_address), {"limit": limit, "most": MOST_HEADERS})
        dialect = postgresql()
        meant = [(RowPlace(row.part, row.place), read(row.headers, row.id, error_address, dialect)) for row in rows]
        if meant:
            held_row.hold_table(connection, error_address)
            if why := held_row.would_run(connection, error_address):
                raise DatabaseError(why)
            row_move.move(connection, error_address, meant, own_code)
    dead = sum(message.result != "success" for _, message in meant)
    near = rows[0].near if rows else 0
    return Ingested(dead, len(meant) - dead, near == limit or near > len(rows))


def _sql() -> Any:
    return postgresql().archive

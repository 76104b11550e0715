"""Empties error queues into the archive, a batch a transaction (C4)."""

from typing import Any, NamedTuple

from pgqueue_admin.archive import fingerprints, store
from pgqueue_admin.archive.error_queue_parser import read
from pgqueue_admin.archive.messages import MOST_HEADERS, DeadMessage
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import RowsDropped
from pgqueue_admin.dialects.postgresql import postgresql

BATCH = 200
Place = dict[str, Any]  # where a row lies: in which part of its table, and where there


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
    """Move up to ``limit`` rows, exactly as they were received. Where it raises a DatabaseError, nothing has moved."""
    with connection.transaction():
        rows = connection.all(_sql().take(table=error_address), {"limit": limit, "most": MOST_HEADERS})
        meant = [(_place(row), read(row.headers, row.id, error_address, postgresql())) for row in rows]
        if meant:
            _move(connection, error_address, meant, own_code)
    dead = sum(message.result != "success" for _, message in meant)
    near = rows[0].near if rows else 0
    return Ingested(dead, len(meant) - dead, near == limit or near > len(rows))


def _place(row: Any) -> Place:
    return {"part": row.part, "place": row.place}


def _move(
    connection: Connection, address: Address, meant: list[tuple[Place, DeadMessage]], own_code: tuple[str, ...]
) -> None:
    rows = connection.as_json([_row(place, message, own_code) for place, message in meant])
    parts = store.fingerprint_parts(connection, _sql().moved_fingerprint)
    found_in = postgresql().canonical(address)
    moved = connection.run(_sql().move(table=address, **parts), {"rows": rows, "found_in": found_in})
    if moved < len(meant):
        raise RowsDropped(f"It gave {moved} of {len(meant)} to the archive, and that was undone.")
    store.died_again(connection, [message for _, message in meant])


def _row(place: Place, message: DeadMessage, own_code: tuple[str, ...]) -> dict[str, Any]:
    schema, table = message.target or (None, None)
    return {
        **{name: _plain(getattr(message, name)) for name in _COLUMNS},
        **place,
        **{"message": message.summary, "target_schema": schema, "target_table": table},
        "fingerprint": fingerprints.digest(message, own_code),
    }


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


_COLUMNS = (
    "result",
    "handled_by",
    "details",
    "kind",
    "queue",
    "message_id",
    "message_type",
    "exception_type",
    "exception_message",
    "stack_trace",
    "failed_queue",
    "no_retry",
    "endpoint",
    "machine",
    "sent_at",
    "died_at",
)


def _sql() -> Any:
    return postgresql().archive

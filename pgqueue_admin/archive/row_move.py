"""Moves locked rows from their table into the archive in one statement, so that no body passes through here."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pgqueue_admin.archive import fingerprints, store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import RowsDropped
from pgqueue_admin.dialects.postgresql import postgresql


class RowPlace(NamedTuple):
    """A row's physical place: table part and position. Valid while the row is locked."""

    part: int
    place: str


Meant = Sequence[tuple[RowPlace, DeadMessage]]


def move(
    connection: Connection,
    table: Address,
    meant: Meant,
    own_code: tuple[str, ...] = (),
    *,
    is_delayed: bool = False,
    ingested_from: Address | None = None,
) -> list[int]:
    """Return the archive ids. Raises RowsDropped if the table gave fewer rows: undo the transaction.

    ``ingested_from``: the queue the rows were in, if the table holds copies of them (crossing_in).
    """
    rows = connection.as_json([_row(place, message, own_code) for place, message in meant])
    parts = store.fingerprint_parts(connection, _sql().moved_fingerprint)
    copied = _sql().kept_of_copy if ingested_from else _sql().kept_of_queue
    kept = _sql().kept_of_delayed if is_delayed else copied
    about = {"rows": rows, "ingested_from": postgresql().canonical(ingested_from or table)}
    moved = connection.all(_sql().move(table=table, kept=kept, **parts), about)
    if len(moved) < len(meant):
        raise RowsDropped(f"It gave {len(moved)} of {len(meant)} to the archive, and that was undone.")
    store.died_again(connection, [message for _, message in meant])
    return [row.id for row in moved]


def _row(place: RowPlace, message: DeadMessage, own_code: tuple[str, ...]) -> dict[str, Any]:
    schema, table = message.target or (None, None)
    return {
        **{name: _plain(getattr(message, name)) for name in _COLUMNS},
        **place._asdict(),
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
    "retry_blocked_reason",
    "endpoint",
    "machine",
    "attempts",
    "sent_at",
    "died_at",
)


def _sql() -> Any:
    return postgresql().archive

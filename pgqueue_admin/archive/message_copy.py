"""Sends a copy of a message as a new message; the original stays unchanged."""

from typing import Any, NamedTuple
from uuid import UUID, uuid4

from pgqueue_admin.archive import dead_messages, foreign_code, store
from pgqueue_admin.archive.errors import NoCopy
from pgqueue_admin.archive.message_edit import MOST_BYTES
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import RowsDropped
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.sessions.queue_notifications import tell_with_commit
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import wire_now

VERB = "copied"


class WaitingOne(NamedTuple):
    queue: Address
    row_id: UUID


class ArchivedOne(NamedTuple):
    archive_id: int


Original = WaitingOne | ArchivedOne


class NewMessage(NamedTuple):
    """``of``: the original's message id."""

    message_id: str
    of: str
    headers: h.Headers


def compose(connection: Connection, original: Original) -> NewMessage:
    """The original's headers without failure headers and marks, with a new id and time, related to the original's id.

    Raises NoCopy, DatabaseError.
    """
    try:
        kept = dead_messages.kept_headers(_headers(connection, original))
    except h.HeadersUnreadable as error:
        raise NoCopy(f"It cannot be copied: {error}.") from None
    message_id, of = str(uuid4()), kept.get(h.MESSAGE_ID) or ""
    related = {h.RELATED_TO: of} if of else {}
    return NewMessage(message_id, of, {**kept, **related, h.MESSAGE_ID: message_id, h.TIME_SENT: wire_now()})


def body(connection: Connection, original: ArchivedOne) -> bytes:
    """The body for a copy into another database. Raises NoCopy if it is too large to carry."""
    row = store.get(connection, original.archive_id)
    if row is None or (row.body_bytes or 0) > MOST_BYTES:
        raise NoCopy(f"Its body has more than {MOST_BYTES:,} bytes." if row else "It is not there any more.")
    (found,) = connection.all(postgresql().archive.bodies(), {"ids": [original.archive_id]})
    return bytes(found.body)


def send(
    connection: Connection, original: Original, new: NewMessage, target: Address, who: str, *, is_ours: bool
) -> None:
    """Send in its own transaction; an archived original gets an event. Raises NoCopy, RowsDropped, DatabaseError."""
    sql, headers = postgresql().message_copy, {"headers": h.dump(new.headers)}
    with connection.transaction():
        if why := foreign_code.would_run(connection, target, foreign_code.INSERT):
            raise NoCopy(why)
        if isinstance(original, WaitingOne):
            copied = sql.from_queue(table=original.queue, target=target), {**headers, "row_id": original.row_id}
        else:
            copied = sql.from_archive(target=target), {**headers, "id": original.archive_id}
        if connection.run(*copied) != 1:
            raise RowsDropped("It has left since you looked, or the queue took no row; that was undone.")
        if isinstance(original, ArchivedOne):
            about = {"ids": [original.archive_id], "targets": [postgresql().canonical(target)], "operation": None}
            connection.run(postgresql().archive.note(), {**about, "who": who, "verb": VERB})
        tell_with_commit(connection, postgresql(), [target] if is_ours else [])


def _headers(connection: Connection, original: Original) -> str:
    if isinstance(original, WaitingOne):
        asked = {"row_id": original.row_id}
        row: Any = connection.one(postgresql().message_copy.waiting(table=original.queue), asked)
        has_body = bool(row and row.has_body)
    else:
        row = store.get(connection, original.archive_id)
        if row and row.kind != "transport":
            raise NoCopy("Only messages of transport queues can be copied.")
        has_body = bool(row and row.body_bytes is not None)
    if row is None:
        raise NoCopy("It is not there any more.")
    if not has_body:
        raise NoCopy("Its body is NULL: a copy would wedge the queue.")
    return str(row.headers)

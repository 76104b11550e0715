"""Moves a waiting message into a queue, in one transaction: from another queue, or from a delayed table."""

from typing import Any

from pgqueue_admin.archive import call_back, foreign_code, held_row, schema_columns
from pgqueue_admin.archive.error_queue_parser import INDEXED, token_of
from pgqueue_admin.archive.held_row import HeldRow, NotMovable, SeenRow
from pgqueue_admin.archive.messages import EDIT_OF, clean
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import RowsDropped
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.sessions.queue_notifications import tell_with_commit

MOVED = ("id", "expires", "headers", "body")


def move(connection: Connection, seen: SeenRow, target: Address, who: str, *, is_ours: bool) -> None:
    """Move all columns but seq, which the target assigns. ``is_ours``: one of our endpoints receives there and is
    notified. A retry that sent the message looks for it there from now on.

    Raises as ``held_row.hold`` does, NotMovable if the target lacks a column that has a value, or DatabaseError; then
    nothing was moved.
    """
    with connection.transaction():
        held = held_row.hold(connection, seen)
        columns = (*MOVED, *_carried(connection, held, target))
        _put(connection, held, target, _sql().into_queue(table=seen.table, target=target, columns=columns), is_ours)
        _tell_retry(connection, held, target, who)


def run_now(connection: Connection, seen: SeenRow, *, is_ours: bool) -> None:
    """Move a delayed message to its destination queue before it is due. Raises as ``move``."""
    with connection.transaction():
        held = held_row.hold(connection, seen)
        if held.others:
            raise NotMovable(
                f"{seen.home.table} has no place for columns of {seen.table.table}: {', '.join(held.others)}."
            )
        _put(connection, held, seen.home, _sql().due_now(table=seen.table, target=seen.home), is_ours)


def _tell_retry(connection: Connection, held: HeldRow, target: Address, who: str) -> None:
    if schema_columns.has(connection, "sent_as", "operation_item"):
        headers, message_id = held.message.headers, held.message.message_id
        said = clean(headers.get(EDIT_OF) or message_id, INDEXED)
        sent = call_back.SentRow(held.seen.table, held.seen.row_id, said, token_of(headers))
        call_back.note_moved(connection, sent, target, who)


def _carried(connection: Connection, held: HeldRow, target: Address) -> list[str]:
    there = held_row.columns(connection, target) if held.others else {}
    lost = [name for name, type_ in held.others.items() if there.get(name) != type_]
    if lost:
        raise NotMovable(f"{target.table} has no place for columns of {held.seen.table.table}: {', '.join(lost)}.")
    return list(held.others)


def _put(connection: Connection, held: HeldRow, target: Address, statement: Any, is_ours: bool) -> None:
    if held.message.raw_body is None:
        raise NotMovable(f"Its body is NULL: it would wedge {target.table}.")
    if why := foreign_code.would_run(connection, target, foreign_code.INSERT):
        raise NotMovable(why)
    if connection.run(statement, held.place._asdict()) != 1:
        raise RowsDropped(f"{target.table} took no row, and that was undone.")
    tell_with_commit(connection, postgresql(), [target] if is_ours else [])


def _sql() -> Any:
    return postgresql().move_to_archive

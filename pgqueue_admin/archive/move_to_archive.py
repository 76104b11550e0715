"""Moves one message that waits out of its table into the archive, in one transaction: as dead, or into the bin."""

from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from pgqueue_admin.archive import fingerprints, held_row, row_move
from pgqueue_admin.archive.from_failure import dead_message
from pgqueue_admin.archive.held_row import HeldRow, NotMovable, SeenRow
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import TableMissing
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.failure import Failure

VERB = "moved out"
DISCARDED = "discarded"
CAUSE = "ProcessEnded"  # stands where an exception's type does: there was none, only an end


class MoveReason(NamedTuple):
    """What the archive says of it: who moved it, whose message it was, and what it did there."""

    who: str
    endpoint: str
    machine: str
    sentence: str
    deaths: int | None = None  # of processes that had it in hand


def move_out(connection: Connection, seen: SeenRow, why: MoveReason, own_code: tuple[str, ...] = ()) -> int:
    """It lies dead. Return the archive id. Raises as ``held_row.hold`` does, and then nothing was moved."""
    with connection.transaction():
        held = _held(connection, seen)
        archive_id = _move(connection, held, _dead(held, why), own_code)
        _note(connection, archive_id, VERB, why.who)
    return archive_id


def discard(connection: Connection, seen: SeenRow, why: MoveReason, own_code: tuple[str, ...] = ()) -> int:
    """It lies in the bin, and nobody is told of a death. Return and raise as ``move_out`` does."""
    with connection.transaction():
        held = _held(connection, seen)
        dead = replace(_dead(held, why), result="rejected")
        archive_id = _move(connection, held, replace(dead, result="success"), own_code)
        kept = fingerprints.are_kept(connection)
        part = _sql().fingerprint if kept else postgresql().archive.no_fingerprint
        told = {"fingerprint": fingerprints.digest(dead, own_code)} if kept else {}
        connection.run(_sql().set_aside(fingerprint=part), {"id": archive_id, "who": why.who, **told})
        _note(connection, archive_id, DISCARDED, why.who)
    return archive_id


def moved(connection: Connection, seen: SeenRow, who: str) -> int | None:
    """The archive id, of an act whose answer was lost; None where nothing was moved. One under way is waited for."""
    if connection.one(_sql().stays(table=seen.table), {"id": seen.row_id, "seq": seen.seq}):
        return None
    archive_id: int | None = connection.value(_sql().moved(), {"id": seen.row_id, "verb": VERB, "who": who})
    return archive_id


def is_there(connection: Connection, queue: Address, row_id: UUID) -> bool:
    """Also while it is in hand: what a receiver deletes is there until it commits."""
    try:
        return bool(connection.value(_sql().is_there(table=queue), {"id": row_id}))
    except TableMissing:
        return False


def _held(connection: Connection, seen: SeenRow) -> HeldRow:
    held = held_row.hold(connection, seen)
    if held.others:
        raise NotMovable(f"{seen.table.table} has columns that the archive has no place for: {', '.join(held.others)}.")
    return held


def _dead(held: HeldRow, why: MoveReason) -> DeadMessage:
    cause = CAUSE if why.deaths else ""
    failure = Failure(
        why.endpoint, held.seen.home, cause, why.sentence, "", recoverable=False, attempts=why.deaths or 0
    )
    dead = dead_message(held.message, failure, postgresql(), why.machine)
    unknown: dict[str, Any] = {} if why.deaths else {"exception_type": None, "stack_trace": None, "attempts": None}
    return replace(dead, endpoint=why.endpoint or None, died_at=None, **unknown)


def _move(connection: Connection, held: HeldRow, dead: DeadMessage, own_code: tuple[str, ...]) -> int:
    meant, is_delayed = [(held.place, dead)], held.seen.is_delayed
    return row_move.move(connection, held.seen.table, meant, own_code, is_delayed=is_delayed)[0]


def _note(connection: Connection, archive_id: int, verb: str, who: str) -> None:
    event = {"ids": [archive_id], "targets": [None], "who": who, "verb": verb, "operation": None}
    connection.run(postgresql().archive.note(), event)


def _sql() -> Any:
    return postgresql().move_to_archive

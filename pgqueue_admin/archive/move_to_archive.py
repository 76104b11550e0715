"""Moves a waiting message out of its table into the archive, in one transaction: as dead or as discarded."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from pgqueue_admin.archive import call_back, fingerprints, held_row, row_move, schema_columns, store
from pgqueue_admin.archive.from_failure import dead_message
from pgqueue_admin.archive.held_row import HeldRow, NotMovable, SeenRow
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import TableMissing
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.failure import Failure

VERB = "moved out"
DISCARDED = "discarded"
CAUSE = "ProcessEnded"  # in place of an exception type: the process just ended


class MoveReason(NamedTuple):
    """What the archive records: who moved the message, its endpoint and machine, and a sentence."""

    who: str
    endpoint: str
    machine: str
    sentence: str
    deaths: int | None = None  # processes that ended with it in flight


def move_out(connection: Connection, seen: SeenRow, why: MoveReason, own_code: tuple[str, ...] = ()) -> int:
    """Archive it as dead. Return the archive id. Raises as ``held_row.hold``, and then nothing was moved.

    A retry's message goes back to its own archive row, unless a process ended with it in flight.
    """
    with connection.transaction():
        held = _held(connection, seen)
        dead, back = _dead(held, why), call_back.CallBackAct(why.who, VERB)
        formers = {} if why.deaths else _formers(connection, seen, {seen.row_id: dead}, back)
        if seen.row_id in formers:
            return formers[seen.row_id]
        if not why.deaths:
            _note_not_sent(connection, seen, {seen.row_id: dead}, back)
        archive_id = _move(connection, held, dead, own_code)
        _note(connection, [archive_id], VERB, why.who)
    return archive_id


def discard(connection: Connection, seen: SeenRow, why: MoveReason, own_code: tuple[str, ...] = ()) -> int:
    """Archive it as discarded, without a death notification. Return and raise as ``move_out``.

    A retry's message goes back to its own archive row, as discarded: each message is archived once.
    """
    with connection.transaction():
        return discard_held(connection, [_held(connection, seen)], why, own_code)[0]


def discard_held(
    connection: Connection,
    held: Sequence[HeldRow],
    why: MoveReason,
    own_code: tuple[str, ...] = (),
    operation: int | None = None,
    copies: Address | None = None,
) -> list[int]:
    """Likewise for locked rows of one table, in the caller's transaction. Return the archive ids.

    ``copies``: the table with copies of another database's rows; retries' messages among them get new archive rows.
    """
    dead = {each.seen.row_id: replace(_dead(each, why), result="rejected") for each in held}
    back = call_back.CallBackAct(why.who, DISCARDED, DISCARDED, operation)
    formers = {} if copies else _formers(connection, held[0].seen, dead, back)
    rest = [each for each in held if each.seen.row_id not in formers]
    if not rest:
        return list(formers.values())
    _note_not_sent(connection, held[0].seen, {each.seen.row_id: dead[each.seen.row_id] for each in rest}, back)
    meant = [(each.place, replace(dead[each.seen.row_id], result="success")) for each in rest]
    ids = _moved_rows(connection, held[0].seen, meant, own_code, copies)
    aside = [dead[each.seen.row_id] for each in rest]
    store.died_again(connection, [each for each in aside if each.edit_of])  # an edited message is another message
    _note_formers(connection, [each for each in aside if not each.edit_of], why.who, operation)
    _set_aside(connection, ids, aside, why.who, own_code, operation)
    _note(connection, ids, DISCARDED, why.who, operation)
    return [*formers.values(), *ids]


def move_out_held(
    connection: Connection, held: Sequence[HeldRow], why: MoveReason, own_code: tuple[str, ...], copies: Address
) -> list[int]:
    """As ``move_out``, for copies of another database's rows, in the caller's transaction. Return the archive ids."""
    meant = [(each.place, _dead(each, why)) for each in held]
    sent = {each.seen.row_id: dead for each, (_, dead) in zip(held, meant, strict=True)}
    _note_not_sent(connection, held[0].seen, sent, call_back.CallBackAct(why.who, VERB))
    ids = _moved_rows(connection, held[0].seen, meant, own_code, copies)
    _note(connection, ids, VERB, why.who)
    return ids


def _moved_rows(
    connection: Connection, seen: SeenRow, meant: row_move.Meant, own_code: tuple[str, ...], copies: Address | None
) -> list[int]:
    if copies:
        return row_move.move(connection, copies, meant, own_code, ingested_from=seen.table)
    return row_move.move(connection, seen.table, meant, own_code, is_delayed=seen.is_delayed)


def _formers(
    connection: Connection, seen: SeenRow, dead: Mapping[UUID, DeadMessage], back: call_back.CallBackAct
) -> dict[UUID, int]:
    """For each row that equals what a retry sent: its archived message. The retry is taken back and the row deleted."""
    if seen.is_delayed or not schema_columns.has(connection, "sent_as", "operation_item"):
        return {}
    rows = {row_id: each.message_id or "" for row_id, each in dead.items()}
    sent = call_back.sent_as_rows(connection, seen.table, rows)
    taken = call_back.take_back(connection, sent, back)
    return {UUID(row.sent_as): row.id for row in sent if taken[row.id].result == "done"}


def _note_not_sent(
    connection: Connection, seen: SeenRow, dead: Mapping[UUID, DeadMessage], back: call_back.CallBackAct
) -> None:
    """Note retries as not sent if their messages cannot go back to their archive rows: edited ones, or ones from
    another database. They have not died, whatever becomes of the rows they were retried from."""
    if not seen.is_delayed and schema_columns.has(connection, "sent_as", "operation_item"):
        rows = {row_id: each.edit_of or each.message_id or "" for row_id, each in dead.items()}
        call_back.note_not_sent(connection, call_back.sent_as_rows(connection, seen.table, rows), back)


def _note_formers(connection: Connection, aside: Sequence[DeadMessage], who: str, operation: int | None) -> None:
    """Note the discard on the former row of a retried message that its endpoint put back for a later attempt. The
    former row stays retried: it did not die, and nothing else will report on it."""
    if known := [each for each in aside if each.retry_token]:
        if not schema_columns.has(connection, "retry_token"):
            return
        said = {"message_ids": [each.message_id for each in known], "tokens": [each.retry_token for each in known]}
        connection.run(_sql().note_former(), {**said, "who": who, "verb": DISCARDED, "operation": operation})


def _set_aside(
    connection: Connection,
    ids: list[int],
    dead: Sequence[DeadMessage],
    who: str,
    own_code: tuple[str, ...],
    operation: int | None,
) -> None:
    kept = fingerprints.are_kept(connection)
    part = _sql().fingerprint if kept else postgresql().archive.no_fingerprint
    told = {"fingerprints": [fingerprints.digest(each, own_code) if kept else None for each in dead]}
    rows = {"ids": ids, "row_ids": [each.row_id for each in dead], **told}
    connection.run(_sql().set_aside(fingerprint=part), {**rows, "who": who, "operation": operation})


def moved(connection: Connection, seen: SeenRow, who: str) -> int | None:
    """The archive id, for an act whose answer was lost; None if nothing was moved. Waits for an act in progress."""
    if connection.one(_sql().stays(table=seen.table), {"id": seen.row_id, "seq": seen.seq}):
        return None
    archive_id: int | None = connection.value(_sql().moved(), {"id": seen.row_id, "verb": VERB, "who": who})
    return archive_id


def is_there(connection: Connection, queue: Address, row_id: UUID) -> bool:
    """Also while in flight: a row that a receiver deletes exists until its commit."""
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


def _note(connection: Connection, ids: list[int], verb: str, who: str, operation: int | None = None) -> None:
    event = {"ids": ids, "targets": [None] * len(ids), "who": who, "verb": verb, "operation": operation}
    connection.run(postgresql().archive.note(), event)


def _sql() -> Any:
    return postgresql().move_to_archive

"""Calls back messages that a retry put into a queue of another database and that still wait there."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pgqueue_admin.archive import call_back, crossings, dead_messages, held_row
from pgqueue_admin.archive.crossings import Crossing
from pgqueue_admin.archive.messages import Outcome
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import CrossingStore, TakenRow
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, Deadlock, RowsDropped
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.waiting_store import WaitingStore
from pgqueue_admin.transport.wire import headers as h

_GONE = "It is no longer in the archive."


class SentMessage(NamedTuple):
    """One message of a crossing, with the id of its row there. ``why``: why it stays there."""

    archive_id: int
    target: Address
    row_id: Any
    why: str | None


class BackStores(NamedTuple):
    """The stores of the other database."""

    crossings: CrossingStore
    waiting: WaitingStore


def carry(here: Connection, there: Session, beside: Session, stores: BackStores, crossing: Crossing) -> str:
    """Delete the rows there, in one transaction, and record its mark here before it commits. Return the mark. Raises
    DatabaseError, as ``crossing_back.carry``. ``beside``: another session of that database.

    Nothing is copied: the archive keeps each message meanwhile.
    """
    whys: dict[int, str] = {}
    with there.transaction():
        mark = stores.crossings.mark(there)
        for queue, sent in _by_queue(_sent(here, crossing)).items():
            whys |= _refused(here, there, stores, crossing, queue, sent)
        stores.crossings.pin(beside)
        crossings.leave(here, crossing, mark, whys)
    return mark


def _refused(
    here: Connection,
    there: Session,
    stores: BackStores,
    crossing: Crossing,
    queue: Address,
    sent: Sequence[SentMessage],
) -> dict[int, str]:
    """Delete the rows of one queue; return why the others stay. An error of one queue fails only its own messages."""
    try:
        with there.transaction():
            held = {row.id: row for row in stores.waiting.hold_each(there, queue, [each.row_id for each in sent])}
            if why := held_row.others_code(stores.waiting.runs(there, queue)):  # while locked: cannot change
                return {each.archive_id: why for each in sent}
            whys = {each.archive_id: _blocking_reason(here, there, stores, crossing, each, held) for each in sent}
            meant = [held[each.row_id] for each in sent if not whys[each.archive_id]]
            if meant and (gone := stores.crossings.remove(there, queue, meant)) != len(meant):
                raise RowsDropped(f"It gave back {gone} of {len(meant)}, and that was undone.")
    except (DatabaseDown, Deadlock):
        raise
    except DatabaseError as error:
        said = f"{postgresql().canonical(queue)} did not give it back: {error}"
        return {each.archive_id: said for each in sent}
    return {each: why for each, why in whys.items() if why}


def _blocking_reason(
    here: Connection,
    there: Session,
    stores: BackStores,
    crossing: Crossing,
    sent: SentMessage,
    held: Mapping[Any, TakenRow],
) -> str:
    row = held.get(sent.row_id)
    if row is None:
        return call_back.PICKED_UP
    asked = {"id": sent.archive_id, "crossing": crossing.id, "row_id": sent.row_id}
    kept = here.one(postgresql().crossing_intent.content(), asked)
    if kept is None:
        return _GONE
    is_same = row.headers == h.dump(dead_messages.kept_headers(kept.headers))
    return "" if is_same and stores.crossings.body(there, sent.target, row) == bytes(kept.body) else call_back.CHANGED


def finish(here: Connection, crossing: Crossing) -> list[Outcome]:
    """After the commit there: make the messages dead again in the caller's transaction. Empty if another process did so
    before."""
    sent = _sent(here, crossing)
    if here.run(postgresql().crossing_intent.end(), {"id": crossing.id}) != 1:
        return []
    if crossing.not_known:
        crossings.reopen(here, crossing, [each.archive_id for each in sent])
    call_back.back_from_there(
        here,
        [each.archive_id for each in sent if each.why is None],
        call_back.CallBackAct(crossing.who, operation=crossing.operation),
    )
    return [_outcome(each) for each in sent]


def given_up(here: Connection, crossing: Crossing, why: str) -> list[Outcome]:
    """The outcomes for the operation while a person has to decide."""
    sentence = crossings.doubt_of(crossing.alias, why, takes_in=True)
    return [_outcome(each, sentence) for each in _sent(here, crossing)]


def lost(here: Connection, crossing: Crossing, who: str) -> list[Outcome]:
    """A person states that the messages never left: end the crossing in the caller's transaction; they stay sent.
    Return the outcomes for the operation."""
    sent = _sent(here, crossing)
    crossings.undo(here, crossing)
    crossings.reopen(here, crossing, [each.archive_id for each in sent])
    return [
        _outcome(each, f"It was not taken out of {crossing.alias}, as {who} has found: it stays sent.") for each in sent
    ]


def _outcome(sent: SentMessage, failed: str = "") -> Outcome:
    if sent.why or failed:
        result = "skipped" if sent.why == call_back.PICKED_UP else "failed"
        return Outcome(sent.archive_id, result, sent.why or failed)
    return Outcome(sent.archive_id, "done", target=postgresql().canonical(sent.target))


def _by_queue(sent: Sequence[SentMessage]) -> Mapping[Address, list[SentMessage]]:
    found: dict[Address, list[SentMessage]] = defaultdict(list)
    for each in sent:
        found[each.target].append(each)
    return found


def _sent(here: Connection, crossing: Crossing) -> list[SentMessage]:
    rows = here.all(postgresql().crossing_intent.puts(), {"id": crossing.id})
    return [
        SentMessage(row.archive_id, Address(row.target_schema, row.target_table), row.row_id, row.why) for row in rows
    ]

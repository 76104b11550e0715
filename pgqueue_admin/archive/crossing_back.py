"""Retries into another database: insert the dead messages there, then mark them here as retried."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pgqueue_admin.archive import crossings, dead_messages
from pgqueue_admin.archive.crossings import Crossing
from pgqueue_admin.archive.messages import Outcome
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import CrossingStore
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, Deadlock, RowsDropped
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.wire import headers as h

_GONE = "It is no longer in the archive."


class CrossingMessage(NamedTuple):
    """One message of a crossing. ``why``: why the other database refused it. ``is_edited``: a person edited it."""

    archive_id: int
    target_schema: str
    target_table: str
    row_id: Any
    is_redirected: bool
    why: str | None
    is_edited: bool

    @property
    def target(self) -> Address:
        return Address(self.target_schema, self.target_table)


def carry(here: Connection, there: Session, beside: Session, store: CrossingStore, crossing: Crossing) -> str:
    """Insert there, in one transaction, and record its mark here before it commits. Return the mark. Raises
    DatabaseError. ``beside``: another session of that database.

    After an error the commit may still have happened: query its outcome (``crossings.held``,
    ``CrossingStore.commit_outcome``).
    """
    with there.transaction():
        mark = store.mark(there)
        whys = {put.archive_id: _refusal(here, there, store, crossing, put) for put in _puts(here, crossing)}
        _put_typed(here, there, store, crossing)
        store.pin(beside)
        crossings.leave(here, crossing, mark, {each: why for each, why in whys.items() if why})
    return mark


def _put_typed(here: Connection, there: Session, store: CrossingStore, crossing: Crossing) -> None:
    """Insert a message that a person composed. Raises DatabaseError if its queue refuses it; then the transaction is
    undone."""
    for row in here.all(postgresql().crossing_intent.typed(), {"id": crossing.id}):
        if store.put(there, Address(row.schema, row.table), row.row_id, row.headers, bytes(row.body)) != 1:
            raise RowsDropped("Its queue took no row.")


def _refusal(here: Connection, there: Session, store: CrossingStore, crossing: Crossing, put: CrossingMessage) -> str:
    """Insert one message, or return why not. An error of one queue fails only its own messages."""
    asked = {"id": put.archive_id, "crossing": crossing.id, "row_id": put.row_id}
    found = here.one(postgresql().crossing_intent.content(), asked)
    if found is None:
        return _GONE
    try:
        with there.transaction():
            headers = found.headers if found.is_edited else h.dump(dead_messages.kept_headers(found.headers))
            if (taken := store.put(there, put.target, put.row_id, headers, bytes(found.body))) != 1:
                raise RowsDropped(f"It took {taken} of 1, and that was undone.")
    except (DatabaseDown, Deadlock):
        raise
    except DatabaseError as error:
        return f"{postgresql().canonical(put.target)} did not take it: {error}"
    return ""


def finish(here: Connection, crossing: Crossing) -> list[Outcome]:
    """After the commit there: mark the messages in the caller's transaction. Empty if another process did so before."""
    puts, sql = _puts(here, crossing), postgresql().crossing_intent
    if here.run(sql.end(), {"id": crossing.id}) != 1:
        return []
    outcomes = {put.archive_id: _outcome(put) for put in puts}
    dead_messages.hold(here, list(outcomes))
    if crossing.not_known:
        crossings.reopen(here, crossing, list(outcomes))
    for target, ids in _redirected(puts).items():
        dead_messages.retarget(here, target, ids)
    if crossing.restores:
        dead_messages.mark_restored(here, outcomes, crossing.who, crossing.operation)
    edited = {put.archive_id for put in puts if put.is_edited}
    for verb, is_edited in (("retried", False), (dead_messages.EDITED, True)):
        meant = {each: outcome for each, outcome in outcomes.items() if (each in edited) is is_edited}
        dead_messages.mark_retried(here, meant, {}, crossing.who, crossing.operation, verb)
    return list(outcomes.values())


def given_up(here: Connection, crossing: Crossing, why: str) -> list[Outcome]:
    """The outcomes for the operation while a person has to decide."""
    sentence = crossings.doubt_of(crossing.alias, why)
    return [Outcome(put.archive_id, "failed", put.why or sentence) for put in _puts(here, crossing)]


def lost(here: Connection, crossing: Crossing, who: str) -> list[Outcome]:
    """A person states that the messages never arrived: end the crossing in the caller's transaction; they stay as they
    were. Return the outcomes for the operation."""
    puts = _puts(here, crossing)
    crossings.undo(here, crossing)
    crossings.reopen(here, crossing, [put.archive_id for put in puts])
    sentence = f"It was not put into {crossing.alias}, as {who} has found: it may be retried."
    return [Outcome(put.archive_id, "failed", put.why or sentence) for put in puts]


def _outcome(put: CrossingMessage) -> Outcome:
    if put.why:
        return Outcome(put.archive_id, "failed", put.why)
    name = postgresql().canonical(put.target)
    return Outcome(put.archive_id, "done", target=name, sent_as=str(put.row_id))


def _redirected(puts: list[CrossingMessage]) -> Mapping[Address, list[int]]:
    found: dict[Address, list[int]] = {}
    for put in puts:
        if put.is_redirected and not put.why:
            found.setdefault(put.target, []).append(put.archive_id)
    return found


def _puts(here: Connection, crossing: Crossing) -> list[CrossingMessage]:
    return [CrossingMessage(*row) for row in here.all(postgresql().crossing_intent.puts(), {"id": crossing.id})]

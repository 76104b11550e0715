"""Dead messages cross back into a queue of another database: put there, then marked here as retried."""

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
    """One message of a crossing. ``why``: the other database did not take it. ``is_edited``: a person wrote it anew."""

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
    """Insert there, in one transaction, which is marked here before it ends. Return the mark. Raises DatabaseError.
    ``beside``: another session there.

    Where it raises, the commit may have been: ask for its outcome (``crossings.held``,
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
    """Raises DatabaseError where its queue refuses it: then all of it is undone."""
    for row in here.all(postgresql().crossing_intent.typed(), {"id": crossing.id}):
        if store.put(there, Address(row.schema, row.table), row.row_id, row.headers, bytes(row.body)) != 1:
            raise RowsDropped("Its queue took no row.")


def _refusal(here: Connection, there: Session, store: CrossingStore, crossing: Crossing, put: CrossingMessage) -> str:
    """Insert one, or say why not. A queue that refuses fails its own messages and nobody else's."""
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
    """It has arrived: in the caller's transaction mark its messages; empty where somebody else has done so."""
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
    """Of a crossing on which a person decides: what its operation says of each."""
    sentence = crossings.doubt_of(crossing.alias, why)
    return [Outcome(put.archive_id, "failed", put.why or sentence) for put in _puts(here, crossing)]


def lost(here: Connection, crossing: Crossing, who: str) -> list[Outcome]:
    """A person says that it never arrived: in the caller's transaction its messages are dead as before. What its
    operation says of each."""
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

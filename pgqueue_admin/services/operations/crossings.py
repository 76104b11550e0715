"""Crossings, acts over two databases: carries them from the first into the other, and settles lost outcomes.

The order keeps messages from being lost or sent twice (docs/decisions/028): the intent is committed here; the other
transaction is marked here before it ends there; the outcome is written here, by the process that learns it.
"""

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import NamedTuple

from django.conf import settings

from pgqueue_admin.archive import (
    crossing_back,
    crossing_in,
    crossing_move,
    crossing_taken_back,
    crossings,
    dead_messages,
)
from pgqueue_admin.archive.crossing_in import Intend, Take, TakenRows, TakingIn
from pgqueue_admin.archive.crossings import Crossing
from pgqueue_admin.archive.messages import Outcome
from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import CommitOutcome, CrossingStore, TakenRow
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.waiting_store import MovingStore
from pgqueue_admin.models.queue_database import QueueDatabase, of_alias, queue_database
from pgqueue_admin.services import audit_intents
from pgqueue_admin.services.operations.acts_allowed import home_elsewhere, others_run
from pgqueue_admin.services.operations.item_outcomes import record

log = logging.getLogger(__name__)


class SettledCrossing(NamedTuple):
    """``state``: as the other database reported it. ``outcomes``: of archived messages that arrived."""

    state: str
    outcomes: list[Outcome] = []


def carry(here: Connection, operation: int) -> None:
    """Carry the crossings that a chunk has just committed. Raises DatabaseError if one failed, or is not known yet."""
    for crossing in crossings.open_ones(here, operation):
        with crossings.held(here, crossing.id) as mine:
            if mine and mine.mark is None:
                _carry(here, mine)


def send_out(here: Connection, number: int) -> list[Outcome] | None:
    """Carry one crossing that this session has just committed, and return its outcomes; None: not known yet.

    Raises DatabaseError if it is known that nothing arrived.
    """
    try:
        with crossings.held(here, number) as mine:
            return _carry(here, mine) if mine and mine.mark is None else None
    except DatabaseError as error:
        if crossings.get(here, number):
            return None
        raise NotCarried(str(error)) from error


def take_in(database: QueueDatabase, queue: Address) -> TakenRows:
    """Take a batch of the database's error queue into the archive. Raises DatabaseError: the batch is still in its
    queue, or its outcome is yet to be settled.
    """

    def take(there: Session) -> Sequence[TakenRow]:
        rows = _store(database).take(there, queue, crossing_in.BATCH, crossing_in.MOST)
        if rows and (why := others_run(there, database, queue)):
            raise DatabaseError(why)
        return rows

    return take_out(database, queue, TakingIn(database.alias), take)[0]


def take_out(
    database: QueueDatabase,
    queue: Address,
    meant: TakingIn,
    take: Take,
    intend: Intend = lambda crossing, rows: None,
) -> tuple[TakenRows, list[Outcome]]:
    """Take rows of a queue there into the archive, and return them with their outcomes. Raises likewise.
    ``meant``: the purpose; ``take``: selects the rows; ``intend``: called before anything leaves.
    """
    with queue_database().write_session() as here, crossings.all_let_go(here):
        with database.write_session() as there, database.write_session() as beside:
            if fault := _store(database).fault(there):
                raise DatabaseError(fault)
            about = (_store(database), queue, meant, take, intend)
            taken = crossing_in.carry(here, there, beside, *about)
        return taken, _finished(here, taken.crossing)


def move(
    database: QueueDatabase, route: tuple[Address, Address], rows: MovingStore, who: str, take: Take, intend: Intend
) -> crossing_move.MovedRows:
    """Move rows of one table there into a queue there. Raises DatabaseError: they are where they were, or the outcome
    is yet to be settled.
    ``rows``: the store of the table that they leave.
    """
    stores = crossing_move.MoveStores(_store(database), rows)
    with queue_database().write_session() as here, crossings.all_let_go(here):
        with database.write_session() as there, database.write_session() as beside:
            if fault := _store(database).fault(there):
                raise DatabaseError(fault)
            moved = crossing_move.carry(here, there, beside, stores, route, who, take, intend)
        _finished(here, moved.crossing)
    return moved


def _finished(here: Connection, crossing: int | None) -> list[Outcome]:
    if crossing is None:
        return []
    with crossings.held(here, crossing) as mine:
        return _finish(here, mine) if mine else []


def ended(number: int) -> SettledCrossing | None:
    """Settle a crossing that raised; None: not known yet, or another process has settled it. Raises DatabaseError."""
    with queue_database().write_session() as here, crossings.held(here, number) as mine:
        return _settled(here, mine) if mine else None


def settle(operation: int | None = None, alias: str | None = None) -> set[int]:
    """Settle crossings that a process left behind; return the operations that changed.

    Crossings held by another session are left to it. A database that does not answer, or whose messages cannot be
    marked now, is retried next time and delays no other. Raises DatabaseDown.
    """
    changed = set()
    with queue_database().write_session() as here:
        for crossing in crossings.open_ones(here, operation, alias):
            try:
                with crossings.held(here, crossing.id) as mine:
                    if mine and _settled(here, mine) and mine.operation is not None:
                        changed.add(mine.operation)
            except DatabaseDown:
                raise
            except DatabaseError as error:
                log.error("What became of crossing %s is not written down yet: %s", crossing.id, error)
    return changed


class PendingCrossing(NamedTuple):
    """``queues``: queues there, with the row ids to look for. ``is_typed``: a person typed the message.
    ``is_move``: from one queue there into another. ``takes_back``: rows that a retry put there.
    """

    crossing: Crossing
    queues: dict[Address, list[str]]
    is_typed: bool
    is_move: bool
    takes_back: bool

    @property
    def rows(self) -> dict[str, list[str]]:
        return {f"{queue.schema}.{queue.table}": ids for queue, ids in self.queues.items()}

    @property
    def number(self) -> int:
        return sum(map(len, self.queues.values()))

    @property
    def asked(self) -> str:
        """The query for the other database; empty: none, as nothing can have been committed there."""
        mark, database = self.crossing.mark, of_alias(self.crossing.alias)
        if mark is None:
            return ""
        return database.dialect.crossings.asked(mark) if database and database.dialect.crossings else mark


def pending(here: Connection) -> list[PendingCrossing]:
    """Crossings that await a person's decision, then those on their way, each oldest first and ``AT_ONCE`` at most.
    Raises DatabaseError.
    """
    found = [*crossings.not_known_ones(here), *crossings.open_ones(here)]
    return [_pending(here, each) for each in found]


def _pending(here: Connection, found: Crossing) -> PendingCrossing:
    kind = crossings.is_typed(here, found), crossings.is_move(here, found), crossings.takes_back(here, found)
    return PendingCrossing(found, crossings.rows(here, found), *kind)


def one_pending(here: Connection, number: int) -> PendingCrossing | None:
    """Return a crossing; None if it is over. Raises DatabaseError."""
    found = crossings.get(here, number)
    return _pending(here, found) if found else None


def undecided() -> list[PendingCrossing]:
    """Crossings whose outcome no database can tell any more. Raises DatabaseError."""
    with queue_database().read_session() as here:
        return [_pending(here, each) for each in crossings.not_known_ones(here)]


def end_as(here: Connection, crossing: Crossing, arrived: bool, who: str) -> None:
    """End a crossing as a person decided; the caller holds its lock. Raises DatabaseError."""
    if arrived:
        _finish(here, crossing)
        return
    takes_back = crossings.takes_back(here, crossing)
    if takes_back or not crossing.takes_in:
        of = crossing_taken_back if takes_back else crossing_back
        with here.transaction():
            _record(here, crossing, of.lost(here, crossing, who))
        return
    with here.transaction():  # the copies may be the only ones left: they go into the bin
        dead_messages.discard(here, _archived(here, crossing), who)


def is_clear(alias: str) -> bool:
    """Whether no crossing to or from that database is open, after settling those left behind."""
    settle(alias=alias)
    with queue_database().write_session() as here:
        return not crossings.open_ones(here, alias=alias)


class NotCarried(DatabaseError):
    """The other database did not take it, and holds nothing of it."""


def _carry(here: Connection, crossing: Crossing) -> list[Outcome]:
    database = _writable(crossing)
    try:
        if database is None:
            raise DatabaseError(f"The database {crossing.alias} is not written to any more.")
        with database.write_session() as there, database.write_session() as beside:
            if crossings.takes_back(here, crossing):
                mark = crossing_taken_back.carry(here, there, beside, _stores(database), crossing)
            else:
                mark = crossing_back.carry(here, there, beside, _store(database), crossing)
    except DatabaseError:
        with crossings.held(here, crossing.id) as now:
            settled = _settled(here, now) if now else None
            if settled and settled.state == "committed":
                return settled.outcomes
        raise
    return _finish(here, crossing._replace(mark=mark))


def _settled(here: Connection, crossing: Crossing) -> SettledCrossing | None:
    """Settle the crossing; None: its outcome is not known now."""
    if crossing.mark is None:
        _undo(here, crossing)
        return SettledCrossing("not_committed")
    try:
        told = _told(crossing)
    except DatabaseError as error:
        log.warning("What became of crossing %s into %s is not known yet: %s", crossing.id, crossing.alias, error)
        return None
    if told.state == "in_progress":
        return None
    took_none = told.state == "not_known" and not crossings.rows(here, crossing)
    if told.state == "committed" or took_none:  # its queues there refused all of it before it was marked
        return SettledCrossing("committed", _finish(here, crossing))
    if told.state == "not_committed":
        _undo(here, crossing)
    else:
        _doubt(here, crossing, told.why)
    return SettledCrossing(told.state)


def _undo(here: Connection, crossing: Crossing) -> None:
    if crossings.undo(here, crossing):
        audit_intents.drop(crossing.id)


def _told(crossing: Crossing) -> CommitOutcome:
    """Query the outcome in a session of its own. Raises DatabaseError."""
    assert crossing.mark is not None
    database = of_alias(crossing.alias)
    if database is None or database.dialect.crossings is None:
        raise DatabaseError(f"No QUEUES_URL_{crossing.alias.upper()} names it.")
    with database.write_session() if database.is_writable else database.read_session() as there:
        return _store(database).commit_outcome(there, crossing.mark)


def _finish(here: Connection, crossing: Crossing) -> list[Outcome]:
    outcomes: list[Outcome] = []
    _audit(here, crossing)
    with here.transaction():
        crossings.make_durable(here)  # after a crash it would be queried again, and the mark there is gone
        if crossings.takes_back(here, crossing):
            outcomes = crossing_taken_back.finish(here, crossing)
            _record(here, crossing, outcomes)
        elif crossing.takes_in:
            queues = crossings.rows(here, crossing)
            ids = _archived(here, crossing)
            outcomes = [Outcome(each, "done") for each in ids]
            _record_purged(here, crossing, queues, ids)
        else:
            outcomes = crossing_back.finish(here, crossing)
            _record(here, crossing, outcomes)
    with suppress(DatabaseError):
        _forget(crossing)
    return outcomes


def _archived(here: Connection, crossing: Crossing) -> list[int]:
    return crossing_in.finish(here, crossing, _dialect(crossing), settings.PGQUEUE["OWN_CODE"], home_elsewhere)


def _audit(here: Connection, crossing: Crossing) -> None:
    """Audit before the crossing ends here: afterwards no process returns to it."""
    if crossing.not_known or (crossing.takes_in and not crossing.is_by_hand):  # audited already, or needs no entry
        return
    if crossings.rows(here, crossing):
        audit_intents.write(crossing.id)
    else:  # its queue there refused all of it
        audit_intents.drop(crossing.id)


def _doubt(here: Connection, crossing: Crossing, why: str) -> None:
    """Hold its messages until a person decides; its operation can end."""
    audit_intents.write(crossing.id, **audit_intents.NOT_KNOWN)
    with here.transaction():
        crossings.doubt(here, crossing, why)
        of = crossing_taken_back if crossings.takes_back(here, crossing) else crossing_back
        _record(here, crossing, of.given_up(here, crossing, why))
    log.error("The outcome of crossing %s into %s is unknown: %s", crossing.id, crossing.alias, why)


def _record_purged(here: Connection, crossing: Crossing, queues: Collection[Address], ids: list[int]) -> None:
    """Record purged ids. The operation may be another console's, of which this database knows nothing."""
    if crossing.operation is not None and ids:
        (queue,) = queues
        about = {"operation_id": crossing.operation, "queue": postgresql().canonical(queue), "ids": ids}
        here.run(postgresql().purge.record(), about)


def _record(here: Connection, crossing: Crossing, outcomes: list[Outcome]) -> None:
    if crossing.operation is not None and outcomes:
        record(here, {"operation_id": crossing.operation}, outcomes)


def _forget(crossing: Crossing) -> None:
    if crossing.mark and (database := _writable(crossing)):
        with database.write_session() as there:
            _store(database).forget(there, crossing.mark)


def _writable(crossing: Crossing) -> QueueDatabase | None:
    database = of_alias(crossing.alias)
    return database if database and database.is_writable and database.dialect.crossings else None


def _dialect(crossing: Crossing) -> Dialect:
    """Return the dialect of its addresses. Raises DatabaseError."""
    if database := of_alias(crossing.alias):
        return database.dialect
    raise DatabaseError(f"No QUEUES_URL_{crossing.alias.upper()} names it.")


def _stores(database: QueueDatabase) -> crossing_taken_back.BackStores:
    waiting = database.dialect.waiting_messages
    assert waiting is not None
    return crossing_taken_back.BackStores(_store(database), waiting)


def _store(database: QueueDatabase) -> CrossingStore:
    store = database.dialect.crossings
    assert store is not None
    return store

"""Moves a crashing message out of its queue: view it, then move it with the right; the audit keeps who and why."""

import logging
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import django.db

from pgqueue_admin.archive import held_row, move_to_archive
from pgqueue_admin.archive.held_row import SeenRow
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import crashing_messages, notify
from pgqueue_admin.models.crashing_messages import CrashingMessage
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import browse, discovery
from pgqueue_admin.monitor.message import WaitingMessage
from pgqueue_admin.services.audit_intents import NOT_KNOWN
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.permissions import name_of, refusal_for

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MovedMessage:
    archive_id: int
    crashing: CrashingMessage


def waiting(connection: Connection, found: CrashingMessage) -> WaitingMessage | None:
    """Return the message as stored in its queue; None if it has left. Raises DatabaseError."""
    table = discovery.find_one(connection, found.address)
    return browse.message(connection, table, found.row_id) if table and table.has_messages else None


def move_out(row_id: UUID, person: Any, origin: str, reason: str = "") -> MovedMessage:
    """Move it into the archive. Raises OperationRefused if nothing was moved; or OutcomeUnknown."""
    found = crashing_messages.suspect(row_id)
    if found is None:
        raise OperationRefused("Nothing was moved. No process is known to have ended with this message in flight.")
    if refusal := refusal_for(person, "move_out"):
        raise OperationNotAllowed(f"Nothing was moved: {refusal}.")
    if not queue_database().allows(found.address):
        raise OperationRefused(
            f"Nothing was moved. The schema {found.address.schema} is not watched here (PGQUEUE_QUEUE_SCHEMAS)."
        )
    moved = MovedMessage(_audited(found, person, origin, reason), found)
    _tell(moved)
    return moved


def _audited(found: CrashingMessage, person: Any, origin: str, reason: str) -> int:
    who, queue = name_of(person), queue_database().dialect.canonical(found.address)
    about = {"who": who, "verb": "move out", "noun": "message", "subject": queue[:400], "origin": origin}
    after = {"row_id": str(found.row_id), "deaths": found.count}
    unknown: OutcomeUnknown | None = None
    with audited(**about, after=after, reason=reason) as act:
        try:
            archive_id = _move(found, who)
            act.note(archive_id=archive_id)
        except OutcomeUnknown as error:
            unknown = error
            act.note(**NOT_KNOWN)
        act.done = 1
    if unknown:
        raise unknown
    return archive_id


def _move(found: CrashingMessage, who: str) -> int:
    try:
        return _act(found, who)
    except held_row.MessageInFlight:
        said = "It is in flight at this moment. Stop the endpoint, move it, and start the endpoint again."
        raise OperationRefused(f"Nothing was moved. {said}") from None
    except held_row.MessageGone:
        crashing_messages.settle(found.row_id)
        raise OperationRefused(f"Nothing was moved. It is in {found.address.table} no more.") from None
    except (held_row.NotMovable, DatabaseError) as error:
        raise OperationRefused(f"Nothing was moved. {error}") from error


def _act(found: CrashingMessage, who: str) -> int:
    why = move_to_archive.MoveReason(who, found.endpoint, found.newest.host, _sentence(found, who), found.count)
    with queue_database().write_session() as connection:
        try:
            return move_to_archive.move_out(connection, _seen(found), why)
        except DatabaseDown as error:
            down = error
    return _committed(found, who, down)


def _committed(found: CrashingMessage, who: str, down: DatabaseDown) -> int:
    """Return the archive id if the move was committed although its answer was lost. Raises ``down`` if it was not."""
    try:
        with queue_database().write_session() as connection:
            archive_id = move_to_archive.moved(connection, _seen(found), who)
    except DatabaseError as error:
        where = f"Refresh: it is in {found.address.table}, or in the archive with your name."
        raise OutcomeUnknown(f"It may have been moved, or not. {error} {where}") from error
    if archive_id is None:
        raise down
    return archive_id


def _seen(found: CrashingMessage) -> SeenRow:
    return SeenRow(found.address, found.row_id, found.seq)


def _sentence(found: CrashingMessage, who: str) -> str:
    ends = pluralize(found.count, "death of its process", "deaths of its process")
    return f"In flight at {ends}; the last was {found.newest.how}. Moved out by {who}."


def _tell(moved: MovedMessage) -> None:
    """Announce the move. A failure here is only logged: the message is moved."""
    try:
        crashing_messages.settle(moved.crashing.row_id)
        notify.announce(notify.PROCESS, moved.crashing.endpoint)
    except django.db.Error as error:
        row_id = moved.crashing.row_id
        log.error("Message %s is archived as %s, and still suspected: %s", row_id, moved.archive_id, error)

"""Moving a fatal message out of its queue: looked at first, then moved, by whoever may, with who and why kept."""

import logging
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import django.db

from pgqueue_admin.archive import moving_out
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.monitor import browse, discovery
from pgqueue_admin.monitor.message import Message
from pgqueue_admin.operations.errors import NotAllowed, Refused, Unknown
from pgqueue_admin.operations.rights import may, name_of
from pgqueue_admin.records import fatal, notify
from pgqueue_admin.records.fatal import Fatal
from pgqueue_admin.records.models import AuditEntry
from pgqueue_admin.records.source import source
from pgqueue_admin.wording.figures import counted

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Moved:
    archive_id: int
    fatal: Fatal


def waiting(connection: Connection, found: Fatal) -> Message | None:
    """The message as it lies in its queue; None where it has left. Raises DatabaseError."""
    table = discovery.find_one(connection, found.address)
    return browse.message(connection, table, found.row_id) if table and table.has_messages else None


def move_out(row_id: UUID, person: Any, origin: str, reason: str = "") -> Moved:
    """Raises Refused, and then nothing was moved; or Unknown."""
    found = fatal.suspect(row_id)
    if found is None:
        raise Refused("Nothing was moved. No process is known to have ended with this message in hand.")
    if refusal := may(person, "move_out"):
        raise NotAllowed(f"Nothing was moved: {refusal}.")
    if not source().allows(found.address):
        raise Refused(f"Nothing was moved. The schema {found.address.schema} is not watched here (QUEUE_SCHEMAS).")
    moved = Moved(_move(found, name_of(person)), found)
    _note(moved, person, origin, reason)
    return moved


def _move(found: Fatal, who: str) -> int:
    try:
        return _act(found, who)
    except moving_out.InHand:
        said = "A process has it in hand at this moment. Stop the endpoint, move it, and start the endpoint again."
        raise Refused(f"Nothing was moved. {said}") from None
    except moving_out.Gone:
        fatal.settle(found.row_id)
        raise Refused(f"Nothing was moved. It is in {found.address.table} no more.") from None
    except DatabaseError as error:
        raise Refused(f"Nothing was moved. {error}") from error


def _act(found: Fatal, who: str) -> int:
    why = moving_out.Why(who, found.endpoint, found.newest.host, _sentence(found, who), found.count)
    with source().writing() as connection:
        try:
            return moving_out.move_out(connection, found.address, found.row_id, found.seq, why)
        except DatabaseDown as error:
            down = error
    return _committed(found, who, down)


def _committed(found: Fatal, who: str, down: DatabaseDown) -> int:
    """What was committed was done, whatever became of its answer. Raises ``down`` where nothing was."""
    try:
        with source().writing() as connection:
            archive_id = moving_out.moved(connection, found.address, found.row_id, found.seq, who)
    except DatabaseError as error:
        where = f"Refresh: it is in {found.address.table}, or in the archive with your name."
        raise Unknown(f"It may have been moved, or not. {error} {where}") from error
    if archive_id is None:
        raise down
    return archive_id


def _sentence(found: Fatal, who: str) -> str:
    ends = counted(found.count, "death of its process", "deaths of its process")
    return f"In hand at {ends}; the last was {found.newest.how}. Moved out by {who}."


def _note(moved: Moved, person: Any, origin: str, reason: str) -> None:
    """The archive's own event says who in any case: it was committed with the act."""
    queue = source().dialect.canonical(moved.fatal.address)
    after = {"archive_id": moved.archive_id, "row_id": str(moved.fatal.row_id), "deaths": moved.fatal.count}
    about = {"who": name_of(person), "verb": "move out", "noun": "message", "subject": queue[:400], "origin": origin}
    try:
        AuditEntry.objects.create(**about, after=after, reason=reason)
        fatal.settle(moved.fatal.row_id)
        notify.announce(notify.PROCESS, moved.fatal.endpoint)
    except django.db.Error as error:
        log.error("Message %s is archived as %s; no audit entry: %s", moved.fatal.row_id, moved.archive_id, error)

"""Moves one message that waits out of its queue into the archive, in one transaction."""

from typing import Any, NamedTuple
from uuid import UUID

from pgqueue_admin.archive import store
from pgqueue_admin.archive.from_failure import dead_message
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import TableMissing
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.wire.message import IncomingMessage

VERB = "moved out"
CAUSE = "ProcessEnded"  # stands where an exception's type does: there was none, only an end


class MessageInFlight(Exception):
    """A receiver has it locked."""


class MessageGone(Exception):
    """It is in this queue no more."""


class MoveReason(NamedTuple):
    """What the archive says of it: who moved it, whose message it was, and what it did there."""

    who: str
    endpoint: str
    machine: str
    sentence: str
    deaths: int


def move_out(connection: Connection, queue: Address, row_id: UUID, seq: int, why: MoveReason) -> int:
    """Return the archive id. Raises InHand or Gone, and then nothing was moved."""
    with connection.transaction():
        row = connection.one(_sql().take(table=queue), {"id": row_id, "seq": seq})
        if row is None:
            raise MessageInFlight if connection.value(_sql().is_there(table=queue), {"id": row_id}) else MessageGone
        archive_id = store.archive_failed(connection, dead_message(*_dead(queue, row, why), postgresql(), why.machine))
        event = {"ids": [archive_id], "targets": [None], "who": why.who, "verb": VERB, "operation": None}
        connection.run(postgresql().archive.note(), event)
    return archive_id


def moved(connection: Connection, queue: Address, row_id: UUID, seq: int, who: str) -> int | None:
    """The archive id, of an act whose answer was lost; None where nothing was moved. One under way is waited for."""
    if connection.one(_sql().stays(table=queue), {"id": row_id, "seq": seq}):
        return None
    archive_id: int | None = connection.value(_sql().moved(), {"id": row_id, "verb": VERB, "who": who})
    return archive_id


def is_there(connection: Connection, queue: Address, row_id: UUID) -> bool:
    """Also while it is in hand: what a receiver deletes is there until it commits."""
    try:
        return bool(connection.value(_sql().is_there(table=queue), {"id": row_id}))
    except TableMissing:
        return False


def _dead(queue: Address, row: Any, why: MoveReason) -> tuple[IncomingMessage, Failure]:
    failure = Failure(why.endpoint, queue, CAUSE, why.sentence, "", recoverable=False, attempts=why.deaths)
    return IncomingMessage.of_row(queue, row), failure


def _sql() -> Any:
    return postgresql().move_to_archive

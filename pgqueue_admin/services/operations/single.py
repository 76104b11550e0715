"""Acts on one message at once."""

from collections.abc import Collection
from contextlib import suppress
from typing import Any

from pgqueue_admin.archive import dead_messages, store
from pgqueue_admin.archive.crossings import why_held
from pgqueue_admin.archive.messages import ArchivedMessage, Outcome
from pgqueue_admin.dialects import Connection, visible_queues
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.visible_queues import LEASE_NAME
from pgqueue_admin.models import Operation
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import queue_access
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.operations.kinds import kind_of
from pgqueue_admin.services.operations.lifecycle import cancel, start
from pgqueue_admin.services.operations.runner import run_chunk
from pgqueue_admin.services.operations.selection import freeze
from pgqueue_admin.services.operations.targets import judge, parsed
from pgqueue_admin.services.permissions import refusal_for


def act(
    kind: str, archive_id: int, person: Any, origin: str, reason: str = "", targets: Collection[str] = ()
) -> Outcome:
    """Act on one message, as an operation of one. Raises OperationNotAllowed, and errors of the database: nothing was
    done then. Or OutcomeUnknown.
    ``targets``: as for ``start``.
    """
    if refusal := refusal_for(person, kind):
        raise OperationNotAllowed(f"Nothing was {kind_of(kind).past}: {refusal}.")
    if refused := _refused(kind, archive_id, targets):
        return refused
    operation = freeze(kind, [archive_id], person, origin, reason)
    start(operation.pk, person, targets=targets)
    try:
        run_chunk(operation.pk)
    except DatabaseError as error:
        silent, found = _after(operation, archive_id)
        if found:
            return found
        with suppress(OperationRefused):  # else it would be done later, unexpectedly
            cancel(operation.pk, person)
        if silent and isinstance(error, DatabaseDown):
            past = kind_of(kind).past
            where = f"Look at the message before you do it again, or at operation {operation.pk}."
            raise OutcomeUnknown(f"Whether it was {past} is not known. {where} {error}") from error
        raise
    cancelled = Outcome(archive_id, "skipped", "It was cancelled meanwhile.", operation=operation.pk)
    return _outcome(operation, archive_id) or _on_its_way(operation, archive_id) or cancelled


def _refused(kind: str, archive_id: int, targets: Collection[str]) -> Outcome | None:
    """Refuse a second click before an operation is created, naming who was first. Uses a session that could act."""
    with queue_database().write_session() as connection:
        message = store.get(connection, archive_id)
        seen = visible_queues.current()
        if message is None or (seen and not seen.sees_name(message.queue)):
            return Outcome(archive_id, "failed", "It is no longer in the archive.")
        if beyond := queue_access.refusal_by_name(message.queue or LEASE_NAME):
            raise OperationNotAllowed(f"Nothing was {kind_of(kind).past}: it {beyond}.")
        if refused := dead_messages.refused(message, kind_of(kind).state):
            return refused
        return _unfit(connection, message, targets) if kind == Operation.Kind.RETRY else None


def _unfit(connection: Connection, message: ArchivedMessage, targets: Collection[str]) -> Outcome | None:
    if unfit := dead_messages.unfit(message):
        return unfit
    assert message.target is not None
    why = judge(connection, [message.target])[message.target].refusal(parsed(targets))
    return Outcome(message.id, "failed", why) if why else None


def _after(operation: Operation, archive_id: int) -> tuple[bool, Outcome | None]:
    """Whether the database does not answer, and the outcome committed before the failure."""
    try:
        done = _outcome(operation, archive_id)
    except DatabaseError:
        return True, None
    return False, done or _on_its_way(operation, archive_id)


def _on_its_way(operation: Operation, archive_id: int) -> Outcome | None:
    """The outcome of a message sent into another database that has not confirmed it yet: housekeeping goes on."""
    with suppress(DatabaseError), queue_database().write_session() as connection:
        message = store.get(connection, archive_id)
        if message and message.crossing:
            return Outcome(archive_id, "skipped", why_held(message), operation=operation.pk)
    return None


def _outcome(operation: Operation, archive_id: int) -> Outcome | None:
    asked = {"operation_id": operation.pk, "archive_id": archive_id}
    with queue_database().write_session() as connection:
        row = connection.one(postgresql().operation.outcome(), asked)
    if row is None or row.outcome is None:
        return None
    before = (row.previous_actor, row.previous_at)
    return Outcome(archive_id, row.outcome, row.why, *before, row.target, operation.pk)

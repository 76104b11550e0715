"""Edit and retry: what a person wrote is sent in the place of a dead message, with an id of its own."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from pgqueue_admin.archive import replay
from pgqueue_admin.archive.messages import EDIT_OF, RETRIED_FROM, Outcome, RetriedFrom
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, Deadlock, RowsDropped
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.sessions.queue_notifications import tell_with_commit
from pgqueue_admin.transport.wire import headers as h

VERB = "edited and retried"
LOCKED = ("NServiceBus.", "ServiceControl.", "Pgqueue.", "$.diagnostics.", "traceparent", "tracestate", "baggage")
_ONLY_TRANSPORT = "Only messages of transport queues can be edited: a lease message is retried as it was."


class EditedMessage(NamedTuple):
    """``headers``: the person's own ones, all that there are to be. ``body`` None: as it was."""

    headers: Mapping[str, str | None]
    body: bytes | None


class EditedRetry(NamedTuple):
    """``message_id``: of the new message; it was sent where the outcome is *done*."""

    outcome: Outcome
    message_id: str


def is_locked(name: str) -> bool:
    """Whether programs read it: those headers are kept, set anew or taken off, and never typed."""
    return name.startswith(LOCKED)


def retry(
    connection: Connection,
    archive_id: int,
    edited: EditedMessage,
    target: Address,
    who: str,
    *,
    is_ours: bool,
    judge: Callable[[Connection], str],
) -> EditedRetry:
    """Insert the edited message into ``target`` and mark the dead one, in one transaction.

    ``judge`` says why nothing is written there; empty: it is. ``is_ours``: an endpoint of ours receives from it, so it
    is told which archived message this was. Raises DatabaseError.
    """
    message_id = str(uuid4())
    with connection.transaction():
        held = replay.hold(connection, [archive_id])
        if not held:
            return EditedRetry(Outcome(archive_id, "failed", "It is no longer in the archive."), message_id)
        (row,) = held
        if refused := replay.refused(row, "dead") or _unfit(row, edited) or _refused(archive_id, judge(connection)):
            return EditedRetry(refused, message_id)
        tokens = replay.new_tokens(connection, [archive_id] if is_ours else [])
        headers = headers_of(row.headers, edited, message_id, archive_id, tokens.get(archive_id))
        outcome = _put(connection, archive_id, target, headers, edited.body)
        if outcome.result == "done":
            connection.run(postgresql().archive.retarget(), {"id": archive_id, **target._asdict()})
            tell_with_commit(connection, postgresql(), [target] if is_ours else [])
            replay.mark_retried(connection, {archive_id: outcome}, tokens, who, None, VERB)
    return EditedRetry(outcome, message_id)


def headers_of(
    text: str | None, edited: EditedMessage, message_id: str, archive_id: int, token: UUID | None
) -> h.Headers:
    """As they are sent: locked ones as a retry keeps them, the person's own as typed, with a new id and time."""
    kept = replay.kept_headers(text)
    locked = {name: value for name, value in kept.items() if is_locked(name)}
    said = {EDIT_OF: kept[h.MESSAGE_ID]} if kept.get(h.MESSAGE_ID) else {}
    marks = said | ({RETRIED_FROM: str(RetriedFrom(archive_id, token))} if token else {})
    return {**locked, h.MESSAGE_ID: message_id, h.TIME_SENT: h.wire_now(), **edited.headers, **marks}


def _unfit(row: Any, edited: EditedMessage) -> Outcome | None:
    if row.kind != "transport":
        return Outcome(row.id, "failed", _ONLY_TRANSPORT)
    if row.body_bytes is None and edited.body is None:
        return Outcome(row.id, "failed", "Its body is NULL: put back, it would wedge the queue. Write one.")
    try:
        h.parse(row.headers)
    except h.HeadersUnreadable as error:
        return Outcome(row.id, "failed", f"It cannot be retried: {error}.")
    return None


def _refused(archive_id: int, why: str) -> Outcome | None:
    return Outcome(archive_id, "failed", why) if why else None


def _put(connection: Connection, archive_id: int, target: Address, headers: h.Headers, body: bytes | None) -> Outcome:
    """A queue that refuses takes nothing, and the message stays dead."""
    name = postgresql().canonical(target)
    asked = {"id": archive_id, "headers": h.dump(headers), "body": body}
    try:
        with connection.transaction():
            if connection.run(postgresql().archive.put_edited(table=target), asked) != 1:
                raise RowsDropped("It took no row, and that was undone.")
    except (DatabaseDown, Deadlock):
        raise
    except DatabaseError as error:
        return Outcome(archive_id, "failed", f"{name} did not take it: {error}")
    return Outcome(archive_id, "done", target=name)

"""Retries a dead message as a person edited it; the audit keeps the changes."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import uuid4

from pgqueue_admin.archive import crossings, edited_retry
from pgqueue_admin.archive.edited_retry import EditedMessage, EditedRetry
from pgqueue_admin.archive.message_edit import MOST_BYTES
from pgqueue_admin.archive.messages import Outcome, clean
from pgqueue_admin.dialects import Address, Connection, database_alias
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Operation
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import audit_intents
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.operations import edits
from pgqueue_admin.services.operations.crossings import NotCarried, send_out
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OutcomeUnknown
from pgqueue_admin.services.operations.kinds import ours
from pgqueue_admin.services.operations.targets import judge
from pgqueue_admin.services.permissions import name_of, refusal_for


class EditChanges(NamedTuple):
    """For the audit: the message's own headers that differ, and both bodies if they differ."""

    headers_before: Mapping[str, str | None]
    headers_after: Mapping[str, str | None]
    bodies: tuple[str, str] | None = None


def retry_edited(
    archive_id: int,
    queue: str,
    edited: EditedMessage,
    target: Address,
    person: Any,
    origin: str,
    reason: str,
    changes: EditChanges,
) -> EditedRetry:
    """Send the edited message in the dead one's place. ``queue``: where it died. Raises OperationNotAllowed,
    DatabaseError, or OutcomeUnknown. If nothing was sent, there is no audit entry.
    """
    if refusal := refusal_for(person, "retry"):
        raise OperationNotAllowed(f"Nothing was sent: {refusal}.")
    if edited.body is not None and len(edited.body) > MOST_BYTES:
        why = f"Its body has more than {MOST_BYTES:,} bytes."
        return EditedRetry(Outcome(archive_id, "failed", why), "")

    who = name_of(person)
    about = {"who": who, "origin": origin, "reason": reason, **_kept(changes)}
    about |= {"verb": "edit", "noun": "message", "subject": queue[:400]}
    if database_alias.alias_of(target):
        with queue_database().write_session() as connection:
            return _cross(connection, archive_id, edited, target, about)
    went, lost = {"archive_id": archive_id, "queue": postgresql().canonical(target), "message_id": str(uuid4())}, None
    with audited(went, **about) as act, queue_database().write_session() as connection:
        try:
            sent = _put(connection, archive_id, edited, target, who, str(went["message_id"]))
            act.done = int(sent.outcome.result == "done")
            act.note(archive_id=archive_id, message_id=sent.message_id, queue=sent.outcome.target)
        except DatabaseDown as error:
            lost, act.done = error, 1
            act.note(**went, **audit_intents.NOT_KNOWN)
    if lost:
        raise OutcomeUnknown(f"Whether it was sent is not known. {_LOOK} {lost}") from lost
    return sent


_LOOK = "Look at the message before you send it again."


def _put(
    connection: Connection, archive_id: int, edited: EditedMessage, target: Address, who: str, message_id: str
) -> EditedRetry:
    def blocking_reason(connection: Connection) -> str:
        return judge(connection, [target])[target].refusal()

    to = connection, archive_id, edited, target, who
    return edited_retry.retry(*to, is_ours=ours()(target), judge=blocking_reason, message_id=message_id)


def _cross(
    connection: Connection, archive_id: int, edited: EditedMessage, target: Address, about: dict[str, Any]
) -> EditedRetry:
    """Send it into another database, which is checked before the message is locked. ``about``: of the audit entry."""
    if why := judge(connection, [target])[target].refusal():
        return EditedRetry(Outcome(archive_id, "failed", why), "")
    with crossings.all_let_go(connection):
        sent, crossing = edited_retry.set_out(connection, archive_id, edited, target, about["who"])
        if crossing is None:
            return sent
        went = {"archive_id": archive_id, "message_id": sent.message_id, "queue": postgresql().canonical(target)}
        audit_intents.keep(crossing, **{**about, "after": {**about["after"], **went}})
        try:
            if outcomes := send_out(connection, crossing):
                return sent._replace(outcome=outcomes[0])
            why = crossings.how_it_stands(connection, crossing, target)
        except NotCarried:
            raise
        except DatabaseError:  # no answer here, and the message may arrive: so it is audited
            why = sent.outcome.why or ""
        audit_intents.not_known(crossing)
    return sent._replace(outcome=sent.outcome._replace(why=why), is_on_its_way=True)


def _kept(changes: EditChanges) -> dict[str, Any]:
    """Return the audit's before and after, cleaned: JSON in the database takes no NUL."""
    before, after = ({"headers": _cleaned(each)} for each in (changes.headers_before, changes.headers_after))
    if changes.bodies is None:
        return {"before": before, "after": after}
    was, now = (clean(each) or "" for each in changes.bodies)
    sizes = {"before": {**before, "body_characters": len(was)}, "after": {**after, "body_characters": len(now)}}
    return {**sizes, "bodies": {"before": was, "after": now}}


def _cleaned(headers: Mapping[str, str | None]) -> dict[str, str | None]:
    return {clean(name) or "": clean(value) for name, value in headers.items()}


def edited_as(archive_id: int, operation: int | None = None) -> str:
    """Return the id of the message sent in place of an archived one: by the given operation on many, or by its latest
    single edit. Empty: none is recorded.
    """
    if operation:
        of_many = Operation.objects.filter(pk=operation).first()
        return edits.sent_as(of_many, archive_id) if of_many else ""
    newest = (
        AuditEntry._base_manager.order_by("-pk")
        .filter(noun="message", verb="edit", after__archive_id=archive_id)
        .first()
    )
    return str((newest.after or {}).get("message_id", "")) if newest else ""

"""A dead message that a person has edited is sent in its place; the audit keeps what was changed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pgqueue_admin.archive import edited_retry
from pgqueue_admin.archive.edited_retry import EditedMessage, EditedRetry
from pgqueue_admin.archive.messages import Outcome, clean
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.operations.errors import OperationNotAllowed
from pgqueue_admin.services.operations.kinds import ours
from pgqueue_admin.services.operations.targets import judge
from pgqueue_admin.services.permissions import name_of, refusal_for

MOST_BYTES = 500_000  # of a body that is typed: it travels through a form


class EditChanges(NamedTuple):
    """For the audit: the own headers that differ, and both bodies where the body does."""

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
    """``queue``: where it died. Raises NotAllowed, DatabaseError.

    Where nothing was sent there is no audit entry.
    """
    if refusal := refusal_for(person, "retry"):
        raise OperationNotAllowed(f"Nothing was sent: {refusal}.")
    if edited.body is not None and len(edited.body) > MOST_BYTES:
        why = f"Its body has more than {MOST_BYTES:,} bytes."
        return EditedRetry(Outcome(archive_id, "failed", why), "")

    def why_not(connection: Connection) -> str:
        return judge(connection, [target])[target].refusal()

    about = {"who": name_of(person), "origin": origin, "reason": reason, **_kept(changes)}
    with audited(verb="edit", noun="message", subject=queue[:400], **about) as act:
        with queue_database().writing() as connection:
            is_ours, who = ours()(target), name_of(person)
            sent = edited_retry.retry(connection, archive_id, edited, target, who, is_ours=is_ours, judge=why_not)
        act.done = int(sent.outcome.result == "done")
        act.note(archive_id=archive_id, message_id=sent.message_id, queue=sent.outcome.target)
    return sent


def _kept(changes: EditChanges) -> dict[str, Any]:
    """JSON of the database takes no NUL."""
    before, after = ({"headers": _cleaned(each)} for each in (changes.headers_before, changes.headers_after))
    if changes.bodies is None:
        return {"before": before, "after": after}
    was, now = (clean(each) or "" for each in changes.bodies)
    sizes = {"before": {**before, "body_characters": len(was)}, "after": {**after, "body_characters": len(now)}}
    return {**sizes, "bodies": {"before": was, "after": now}}


def _cleaned(headers: Mapping[str, str | None]) -> dict[str, str | None]:
    return {clean(name) or "": clean(value) for name, value in headers.items()}


def edited_as(archive_id: int) -> str:
    """The id of the message that was sent in the place of an archived one, last; empty: none, as far as is kept."""
    newest = AuditEntry.objects.filter(noun="message", verb="edit", after__archive_id=archive_id).first()
    return str((newest.after or {}).get("message_id", "")) if newest else ""

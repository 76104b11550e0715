"""Copy as new: sends an archived or waiting message again with its own id; the original stays."""

from typing import Any

from pgqueue_admin.archive import message_copy
from pgqueue_admin.archive.errors import NoCopy
from pgqueue_admin.archive.message_copy import ArchivedOne, NewMessage, Original
from pgqueue_admin.archive.messages import clean
from pgqueue_admin.dialects import Address, Connection, database_alias
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import discovery
from pgqueue_admin.services import sent_forms, typed_messages
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.operations import acts_allowed
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.permissions import name_of, refusal_for

NOTHING = "Nothing was sent"


def copy(original: Original, target: Address, person: Any, origin: str, reason: str = "", form: str = "") -> str:
    """Return the new message id. Raises OperationRefused, or OutcomeUnknown. ``form``: makes a form send only once."""
    if refusal := refusal_for(person, "send"):
        raise OperationNotAllowed(f"{NOTHING}: {refusal}.")
    about: dict[str, Any] = {"who": name_of(person), "verb": "copy", "noun": "message"}
    about |= {"origin": origin, "reason": reason}
    subject, lost = queue_database().dialect.canonical(target)[:400], None
    if database_alias.alias_of(target):
        return _across(original, target, {**about, "subject": subject}, form)
    try:
        with queue_database().write_session() as connection:
            new = _composed(connection, original, target)
            about |= {"subject": subject, "before": _said(original, new), "after": {"message_id": new.message_id}}
            with audited(None, lambda intent: sent_forms.claim(form, intent, about), **about) as act:
                act.note(**sent_forms.noted(form))
                is_ours = acts_allowed.is_ours(target)
                try:
                    message_copy.send(connection, original, new, target, name_of(person), is_ours=is_ours)
                except DatabaseDown as error:
                    lost = error
                act.note(**({"outcome": "not known"} if lost else {}))
                act.done = 1
    except (NoCopy, DatabaseError) as error:
        raise OperationRefused(f"{NOTHING}. {error}") from error
    if lost:
        raise OutcomeUnknown(f"Whether it was sent is not known. Its id is {new.message_id}. {lost}") from lost
    return new.message_id


def _across(original: Original, target: Address, about: dict[str, Any], form: str) -> str:
    """Send the copy into another database, like a typed message."""
    if not isinstance(original, ArchivedOne):
        raise OperationRefused(f"{NOTHING}. Into another database archived messages are copied, not waiting ones.")
    try:
        with queue_database().read_session() as connection:
            new = message_copy.compose(connection, original)
            body = message_copy.body(connection, original)
        entry = {**about, "before": _said(original, new), "after": {"message_id": new.message_id}}
        lost = typed_messages.send_across(target, new.headers, body, entry, form)
    except (NoCopy, DatabaseError) as error:
        raise OperationRefused(f"{NOTHING}. {error}") from error
    if lost:
        raise OutcomeUnknown(f"Whether it was sent is not known. Its id is {new.message_id}. {lost}")
    return new.message_id


def _composed(connection: Connection, original: Original, target: Address) -> NewMessage:
    if not isinstance(original, ArchivedOne):
        _check_source(connection, original.queue)
    if why := typed_messages.blocking_reason(connection, target):
        raise OperationRefused(f"{NOTHING}. {why}")
    return message_copy.compose(connection, original)


def _check_source(connection: Connection, queue: Address) -> None:
    if not queue_database().allows(queue):
        raise OperationRefused(f"{NOTHING}. The schema {queue.schema} is not watched here (PGQUEUE_QUEUE_SCHEMAS).")
    table = discovery.readable(connection, queue)
    if table is None or not table.has_messages:
        raise OperationRefused(f"{NOTHING}. There is no queue table {queue.table} now.")


def _said(original: Original, new: NewMessage) -> dict[str, Any]:
    """Name the original in the audit. The copy's RelatedTo and the archived message's history name it, too."""
    said = {"copy_of": clean(new.of)}
    if isinstance(original, ArchivedOne):
        return {**said, "archive_id": original.archive_id}
    return {**said, "queue": queue_database().dialect.canonical(original.queue), "row_id": str(original.row_id)}

"""Acts on an outbox by hand: sends records that a crash left in it, each in its own transaction.

Marking a record as dispatched is the guard: it fails if an endpoint or its relay sent it, so nothing is sent twice.
"""

import logging
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import django.db
from django.db.models import QuerySet

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.audit_intents import NOT_KNOWN
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.permissions import name_of, refusal_for

log = logging.getLogger(__name__)

MOST = 1_000  # records an act
_IN_DOUBT = "{} record(s) were sent; of the one after them it is not known: look at it again. {}"


class DispatchableOutbox(Protocol):
    """Implemented by ``outbox.endpoint_outbox.EndpointOutbox`` for our endpoints, whose settings name their queues."""

    def relay(self, session: Connection, record_id: str) -> int | None: ...


class Dispatched(NamedTuple):
    """``passed``: records sent by others meanwhile, or gone. ``refused``: why each other record is not sent."""

    records: int
    messages: int
    passed: int
    refused: list[str]


def dispatch(outbox: DispatchableOutbox, ids: Iterable[str], person: Any, origin: str, reason: str = "") -> Dispatched:
    """Send the messages of these records under their ids. Raises OperationRefused, or OutcomeUnknown."""
    if refusal := refusal_for(person, "dispatch"):
        raise OperationNotAllowed(f"Nothing was sent: {refusal}.")
    meant, lost = list(ids), None
    about = {"who": name_of(person), "verb": "dispatch", "noun": "outbox", "origin": origin, "reason": reason}
    try:
        with (
            queue_database().write_session() as connection,
            audited({"records": len(meant)}, **about, subject=str(outbox)) as act,
        ):
            done, lost = _dispatch(connection, outbox, meant)
            act.done = int(bool(done.records or lost))
            act.note(records=done.records, messages=done.messages, **(NOT_KNOWN if lost else {}))
    except DatabaseDown as error:
        raise OutcomeUnknown(_IN_DOUBT.format(0, error)) from error
    if lost:
        raise OutcomeUnknown(_IN_DOUBT.format(done.records, lost)) from lost
    if done.refused and not done.records:
        raise OperationRefused(f"Nothing was sent. {done.refused[0]}")
    return done


def _dispatch(
    connection: Connection, outbox: DispatchableOutbox, ids: Iterable[str]
) -> tuple[Dispatched, DatabaseDown | None]:
    """Return the result, and the error if the database went away during a record."""
    records, messages, passed, refused = 0, 0, 0, list[str]()
    for message_id in ids:
        try:
            sent = outbox.relay(connection, message_id)
        except DatabaseDown as error:
            return Dispatched(records, messages, passed, refused), error
        except (DatabaseError, ValueError) as error:
            refused.append(f"{message_id}: {error}")
            continue
        records, messages, passed = (
            (records, messages, passed + 1) if sent is None else (records + 1, messages + sent, passed)
        )
    return Dispatched(records, messages, passed, refused), None


def history(table: Address) -> QuerySet[AuditEntry]:
    """Audit entries of sends and switches of this table, by people and relays; newest first."""
    return AuditEntry.objects.filter(noun="outbox", subject=postgresql().canonical(table)[:400])


def note_sent(outbox: object, records: int, messages: int, person: Any, origin: str, reason: str = "") -> None:
    """Audit records that are already sent; if the audit fails, log them."""
    about = {"who": name_of(person), "verb": "dispatch", "noun": "outbox", "origin": origin, "reason": reason}
    try:
        AuditEntry.objects.create(**about, subject=str(outbox), after={"records": records, "messages": messages})
    except django.db.Error as error:
        log.error("%d record(s) of %s were sent by %s; no audit entry: %s", records, outbox, about["who"], error)

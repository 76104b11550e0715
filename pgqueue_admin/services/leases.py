"""What a person does with messages of the lease queue by hand: publish one, release a lock, end a message.

Each act is one statement, guarded by the lock that the person looked at: one that was taken meanwhile is not touched.
"""

import json
import logging
from typing import Any, Literal

import django.db

from pgqueue_admin.archive.messages import LARGEST_ID, clean
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.lease_store import QUEUE, HandEnding, LeaseStore
from pgqueue_admin.lease.errors import LeaseQueueMissing
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.permissions import name_of, refusal_for

log = logging.getLogger(__name__)

MOST_BYTES = 1_000_000  # of a message that is typed: workers publish larger ones
_DONE = {"publish": "published", "release": "released", "end": "ended"}


def publish(queue: Address, text: str, person: Any, origin: str, reason: str = "") -> int:
    """Insert a message of this JSON text, digit by digit as it was typed; its id. Raises Refused, or Unknown."""
    _allow("publish", queue, person)
    document = _checked(text)
    try:
        with queue_database().writing() as connection:
            (number,) = _store(connection).publish(connection, [document])
    except DatabaseDown as error:
        raise _unknown(
            "published", "look whether it waits or was handled before you publish it again", error
        ) from error
    except DatabaseError as error:
        raise OperationRefused(f"Nothing was published. {error}") from error
    _note("publish", number, person, origin, reason, {})
    return number


def release(queue: Address, number: int, seen: str, person: Any, origin: str, reason: str = "") -> None:
    """Take the lock off that was ``seen``: another worker may claim the message at once. Raises Refused, or Unknown."""
    _allow("release", queue, person)
    try:
        with queue_database().writing() as connection:
            store = _store(connection)
            if not (0 < number <= LARGEST_ID and store.release_seen(connection, number, seen)):
                raise OperationRefused(_why_not("released", store, connection, number, seen))
    except DatabaseDown as error:
        raise _unknown("released", "look at it before you do it again", error) from error
    except DatabaseError as error:
        raise OperationRefused(f"Nothing was released. {error}") from error
    _note("release", number, person, origin, reason, {})


def end(
    queue: Address, number: int, seen: str, result: Literal["rejected", "failed"], person: Any, origin: str, reason: str
) -> int:
    """Archive it, from the lock that was ``seen`` or from none; its archive id. Raises Refused, or Unknown."""
    _allow("end", queue, person)
    if not reason:
        raise OperationRefused("Nothing was ended: a reason is asked for.")
    who = name_of(person)
    ending = HandEnding(result, clean(who) or "", clean(f"Ended by {who}: {reason}", 8000) or "")
    try:
        with queue_database().writing() as connection:
            store = _store(connection)
            archived = store.end_seen(connection, number, seen, ending) if 0 < number <= LARGEST_ID else None
            if archived is None:
                raise OperationRefused(_why_not("ended", store, connection, number, seen))
    except DatabaseDown as error:
        raise _unknown("ended", "it is in the queue, or in the archive with your name", error) from error
    except DatabaseError as error:
        raise OperationRefused(f"Nothing was ended. {error}") from error
    _note("end", number, person, origin, reason, {"result": result, "archive_id": archived})
    return archived


def refusal(verb: str, queue: Address, person: Any) -> str:
    """Why this person may not do it there; empty where they may."""
    return str(refusal_for(person, verb) or _no_queue(queue))


def _no_queue(queue: Address) -> str:
    """Another table of its shape, a copy for instance, has the same numbers: an act would meet another message."""
    if queue != QUEUE:
        name = queue_database().dialect.canonical
        return f"{name(queue)} only has the shape of the lease queue, which is {name(QUEUE)}"
    if not queue_database().allows(QUEUE):
        return f"the schema {QUEUE.schema} is not watched here (PGQUEUE_QUEUE_SCHEMAS)"
    return ""


def _allow(verb: str, queue: Address, person: Any) -> None:
    past = _DONE[verb]
    if forbidden := refusal_for(person, verb):
        raise OperationNotAllowed(f"Nothing was {past}: {forbidden}.")
    if elsewhere := _no_queue(queue):
        raise OperationRefused(f"Nothing was {past}: {elsewhere}.")


def _store(connection: Connection) -> LeaseStore:
    """Raises Refused where the tables are not ours yet: what guards the acts are columns of ours."""
    store = queue_database().dialect.leases
    if store is None or not store.is_installed(connection):
        raise OperationRefused(f"Nothing was done. {LeaseQueueMissing.__doc__}")
    return store


def _checked(text: str) -> str:
    """Raises Refused with where it is no JSON."""
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise OperationRefused(f"Nothing was published: the message has more than {MOST_BYTES:,} bytes.")
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise OperationRefused(f"Nothing was published: this is no JSON. {error.msg}, {where}.") from None
    except (ValueError, RecursionError) as error:
        raise OperationRefused(f"Nothing was published: this is no JSON that can be read. {error}") from None
    return text


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON.")


def _why_not(past: str, store: LeaseStore, connection: Connection, number: int, seen: str) -> str:
    now = store.seen_now(connection, number) if 0 < number <= LARGEST_ID else None
    if now is None:
        return f"Nothing was {past}. Message {number} is no longer in the queue: it ended meanwhile."
    if now == seen == "" and past == "released":
        return f"Nothing was released. Message {number} is not locked."
    if now == seen:
        return f"Nothing was {past}. Somebody is changing message {number} at this moment. Look again."
    if not now:
        return f"Nothing was {past}. The lock on message {number} was released meanwhile: it waits."
    return f"Nothing was {past}. Message {number} was locked anew meanwhile, and whoever has it keeps it."


def _unknown(past: str, what: str, error: DatabaseDown) -> OutcomeUnknown:
    return OutcomeUnknown(f"It may have been {past}, or not: {what}. {error}")


def _note(verb: str, number: int, person: Any, origin: str, reason: str, more: dict[str, Any]) -> None:
    about = {"who": name_of(person), "verb": verb, "noun": "message", "origin": origin, "reason": reason}
    subject = queue_database().dialect.canonical(QUEUE)
    try:
        AuditEntry.objects.create(**about, subject=subject, after={"id": number, **more})
    except django.db.Error as error:
        log.error("Lease message %s was %s by %s; no audit entry: %s", number, _DONE[verb], about["who"], error)

"""Acts on lease messages by hand: publish one, release a lock, end a message.

Each message has its own transaction, guarded by the lock that the person saw. A message locked anew since is not
touched, nor is one in a running transaction. Nothing is done if it would run code of other roles.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pgqueue_admin.archive import foreign_code
from pgqueue_admin.archive.held_row import NotMovable
from pgqueue_admin.archive.messages import LARGEST_ID, clean
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, TimedOut
from pgqueue_admin.dialects.lease_store import QUEUE, HandEnding, LeaseStore
from pgqueue_admin.lease.errors import LeaseQueueMissing
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import sent_forms
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.operations.acts_allowed import no_lease_queue
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.permissions import name_of, refusal_for

MOST_BYTES = 1_000_000  # of a typed message: workers may publish larger ones
MOST = 50  # at once: one page of messages
_ENDED = "It is no longer in the queue: it ended meanwhile."

ActName = Literal["release", "failed", "rejected"]


class SeenLease(NamedTuple):
    """A message as a person saw it. ``lock``: its lock as in LeaseMessage.seen; empty: none."""

    number: int
    lock: str


@dataclass(frozen=True, slots=True)
class LeaseAct:
    """``verb``: of the audit entry. ``look``: where to look if the outcome is unknown. ``result``: only of an end."""

    verb: str
    done: str
    look: str
    result: Literal["rejected", "failed"] | None = None

    @property
    def writes(self) -> list[tuple[Address, int]]:
        """The tables that the act writes and how, with the writes of our own triggers."""
        if self.result is None:
            return [(QUEUE, foreign_code.UPDATE)]
        noted = foreign_code.INSERT + foreign_code.UPDATE
        return [(QUEUE, foreign_code.DELETE), (_ARCHIVE, noted), (_EVENTS, foreign_code.INSERT)]


_ARCHIVE, _EVENTS = Address("messages", "message_archive"), Address("messages", "archive_event")
_AS_ENDED = "it is in the queue, or in the archive with your name"
ACTS: dict[ActName, LeaseAct] = {
    "release": LeaseAct(verb="release", done="released", look="look at it before you do it again"),
    "failed": LeaseAct(verb="end", done="ended", look=_AS_ENDED, result="failed"),
    "rejected": LeaseAct(verb="end", done="ended", look=_AS_ENDED, result="rejected"),
}
PUBLISH = LeaseAct(
    verb="publish", done="published", look="look whether it waits or was handled before you publish it again"
)


@dataclass(frozen=True, slots=True)
class LeaseOutcome:
    """Result for one message. ``why``: set unless it is *done*. *unknown*: the database went away during the act."""

    number: int
    result: Literal["done", "skipped", "failed", "unknown"]
    why: str = ""
    archive_id: int | None = None


def publish(queue: Address, text: str, person: Any, origin: str, reason: str = "", form: str = "") -> int:
    """Insert a message of this JSON text exactly as typed; return its id. Raises OperationRefused, or OutcomeUnknown.
    ``form``: makes a form publish only once.
    """
    _allow(PUBLISH, queue, person)
    document, lost, about = _checked(text), None, _about("publish", person, origin, reason)
    try:
        with (
            queue_database().write_session() as connection,
            audited(None, lambda intent: sent_forms.claim(form, intent, about), **about) as entry,
        ):
            entry.note(**sent_forms.noted(form))
            store = _store(connection)
            try:
                with connection.transaction():
                    _refuse_code(connection, [(QUEUE, foreign_code.INSERT)])
                    (number,) = store.publish(connection, [document])
                entry.note(id=number)
            except DatabaseDown as error:
                lost = error
                entry.note(outcome="not known")
            entry.done = 1
    except (DatabaseError, NotMovable) as error:
        raise OperationRefused(f"Nothing was published. {error}") from error
    if lost:
        raise OutcomeUnknown(f"It may have been {PUBLISH.done}, or not: {PUBLISH.look}. {lost}") from lost
    return number


def release(queue: Address, number: int, seen: str, person: Any, origin: str, reason: str = "") -> None:
    """Remove the lock that was ``seen``: another worker may claim the message at once. Raises OperationRefused, or
    OutcomeUnknown.
    """
    _only("release", act("release", queue, [SeenLease(number, seen)], person, origin, reason))


def end(
    queue: Address, number: int, seen: str, result: Literal["rejected", "failed"], person: Any, origin: str, reason: str
) -> int:
    """Archive the message if its lock is still as ``seen``, or if it still has none; return its archive id. Raises
    OperationRefused, or OutcomeUnknown.
    """
    done = _only(result, act(result, queue, [SeenLease(number, seen)], person, origin, reason))
    assert done.archive_id is not None
    return done.archive_id


def act(
    name: ActName, queue: Address, seen: Sequence[SeenLease], person: Any, origin: str, reason: str = ""
) -> list[LeaseOutcome]:
    """Act on each message in the order given. Raises OperationRefused or DatabaseError: nothing was done to
    any then.
    """
    kind = ACTS[name]
    _allow(kind, queue, person)
    if not 0 < len(seen) <= MOST:
        raise OperationRefused(f"Nothing was {kind.done}: between 1 and {MOST} messages can be acted on at once.")
    if kind.result and not reason:
        raise OperationRefused("Nothing was ended: a reason is asked for.")
    try:
        with queue_database().write_session() as connection:
            return _audited(name, connection, _store(connection), seen, (person, origin, reason))
    except DatabaseError as error:
        raise OperationRefused(f"Nothing was {kind.done}. {error}") from error


def _only(name: ActName, outcomes: Sequence[LeaseOutcome]) -> LeaseOutcome:
    """Return the outcome of an act on one message. Raises OperationRefused or OutcomeUnknown if it was not done."""
    (only,) = outcomes
    if only.result == "unknown":
        raise OutcomeUnknown(only.why)
    if only.result != "done":
        raise OperationRefused(f"Nothing was {ACTS[name].done}. {only.why}")
    return only


def _audited(
    name: ActName,
    connection: Connection,
    store: LeaseStore,
    seen: Sequence[SeenLease],
    said: tuple[Any, str, str],
) -> list[LeaseOutcome]:
    """Act on all, with one audit entry unless nothing was done."""
    person, origin, reason = said
    kind, who = ACTS[name], name_of(person)
    ending = (
        HandEnding(kind.result, clean(who) or "", clean(f"Ended by {who}: {reason}", 8000) or "")
        if kind.result
        else None
    )
    asked = {"ids": [each.number for each in seen], **({"result": kind.result} if kind.result else {})}
    with audited(asked, **_about(kind.verb, person, origin, reason), count=len(seen)) as entry:
        outcomes = _each(connection, store, kind, seen, ending)
        entry.done = sum(each.result in ("done", "unknown") for each in outcomes)
        entry.note(**_after(kind, outcomes))
    return outcomes


def _after(kind: LeaseAct, outcomes: Sequence[LeaseOutcome]) -> dict[str, Any]:
    ending = {"result": kind.result} if kind.result else {}
    if len(outcomes) == 1 and outcomes[0].result == "done":
        archived = {"archive_id": outcomes[0].archive_id} if kind.result else {}
        return {"id": outcomes[0].number, **ending, **archived}
    after: dict[str, Any] = {**ending}
    for result, key in (("done", "ids"), ("skipped", "skipped"), ("failed", "failed"), ("unknown", "unknown")):
        if numbers := [each.number for each in outcomes if each.result == result]:
            after[key] = numbers
    if archived_as := [each.archive_id for each in outcomes if each.archive_id]:
        after["archive_ids"] = archived_as
    return after


def _each(
    connection: Connection, store: LeaseStore, kind: LeaseAct, seen: Sequence[SeenLease], ending: HandEnding | None
) -> list[LeaseOutcome]:
    outcomes: list[LeaseOutcome] = []
    for place, each in enumerate(seen):
        try:
            outcomes.append(_one(connection, store, kind, each, ending))
        except DatabaseDown as error:
            why = f"It may have been {kind.done}, or not: {kind.look}. {error}"
            rest = [LeaseOutcome(other.number, "failed", str(error)) for other in seen[place + 1 :]]
            return [*outcomes, LeaseOutcome(each.number, "unknown", why), *rest]
        except TimedOut as error:  # the table is locked: each other message would wait as long
            return outcomes + [LeaseOutcome(other.number, "failed", str(error)) for other in seen[place:]]
    return outcomes


def _one(
    connection: Connection, store: LeaseStore, kind: LeaseAct, seen: SeenLease, ending: HandEnding | None
) -> LeaseOutcome:
    number, lock = seen
    if not 0 < number <= LARGEST_ID:
        return LeaseOutcome(number, "skipped", _ENDED)
    try:
        with connection.transaction():
            _refuse_code(connection, kind.writes)
            archive_id = store.end_seen(connection, number, lock, ending) if ending else None
            done = archive_id is not None or (ending is None and store.release_seen(connection, number, lock))
        if done:
            return LeaseOutcome(number, "done", archive_id=archive_id)
        return LeaseOutcome(number, "skipped", _blocking_reason(kind, store.seen_now(connection, number), lock))
    except (DatabaseDown, TimedOut):
        raise
    except (DatabaseError, NotMovable) as error:
        return LeaseOutcome(number, "failed", str(error))


def _refuse_code(connection: Connection, writes: Sequence[tuple[Address, int]]) -> None:
    """Check in the caller's transaction. Raises NotMovable if a write would run code of another role."""
    for table, acts in writes:
        if why := foreign_code.would_run(connection, table, acts):
            raise NotMovable(why)


def refusal(verb: str, queue: Address, person: Any) -> str:
    """Why this person may not do it in this queue; empty: they may."""
    return str(refusal_for(person, verb) or no_lease_queue(queue))


def _allow(kind: LeaseAct, queue: Address, person: Any) -> None:
    if forbidden := refusal_for(person, kind.verb):
        raise OperationNotAllowed(f"Nothing was {kind.done}: {forbidden}.")
    if elsewhere := no_lease_queue(queue):
        raise OperationRefused(f"Nothing was {kind.done}: {elsewhere}.")


def _store(connection: Connection) -> LeaseStore:
    """Return the store. Raises OperationRefused if our columns, which guard the acts, are not installed."""
    store = queue_database().dialect.leases
    if store is None or not store.is_installed(connection):
        raise OperationRefused(f"Nothing was done. {LeaseQueueMissing.__doc__}")
    return store


def _checked(text: str) -> str:
    """Return the text. Raises OperationRefused with the place where it is no JSON."""
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


def _blocking_reason(kind: LeaseAct, now: str | None, seen: str) -> str:
    """``now``: the lock that it has; None: the message is gone."""
    if now is None:
        return _ENDED
    if now == seen == "" and kind.result is None:
        return "It is not locked."
    if now == seen:
        return "Somebody is changing it at this moment. Reload the page."
    if not now:
        return "Its lock was released meanwhile: it waits."
    return "It was locked anew meanwhile, and whoever has it keeps it."


def _about(verb: str, person: Any, origin: str, reason: str) -> dict[str, Any]:
    subject = queue_database().dialect.canonical(QUEUE)
    about = {"who": name_of(person), "noun": "message", "origin": origin, "reason": reason}
    return {**about, "verb": verb, "subject": subject}

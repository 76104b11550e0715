"""Requests a trial of dead messages: which can be tried, by which endpoint, and who requested it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchivedMessage
from pgqueue_admin.dialects import Address, Connection, visible_queues
from pgqueue_admin.dialects.visible_queues import LEASE_NAME
from pgqueue_admin.models import AuditEntry, Endpoint, Trial, TrialItem, database_clock, notify
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.models.trial import KEPT
from pgqueue_admin.services import queue_access
from pgqueue_admin.services.operations.errors import EmptySelection, OperationNotAllowed
from pgqueue_admin.services.operations.targets import Target, judge
from pgqueue_admin.services.permissions import name_of, refusal_for

MOST = 200  # messages of one trial
WITHIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chosen message. ``blocking_reason``: a sentence; empty: its endpoint will try it."""

    message: ArchivedMessage
    endpoint: str
    blocking_reason: str


def candidates(connection: Connection, ids: Iterable[int]) -> list[Candidate]:
    """Return the archived messages among the ids that the person may see, in the order given; the first ``MOST``.

    Raises DatabaseError.
    """
    chosen = list(dict.fromkeys(ids))[:MOST]
    seen = visible_queues.current()
    found = [message for each in chosen if (message := store.show(connection, each))]
    found = [message for message in found if seen is None or seen.sees_name(message.queue)]
    targets = judge(connection, {message.target for message in found if message.target})
    known = _endpoints()
    return [_candidate(message, targets, known) for message in found]


def _endpoints() -> dict[Address, Endpoint]:
    return {Address(row.schema, row.table): row for row in Endpoint.objects.filter(ours=True)}


def _candidate(message: ArchivedMessage, targets: dict[Address, Target], known: dict[Address, Endpoint]) -> Candidate:
    endpoint = known.get(message.target) if message.target else None
    return Candidate(message, endpoint.name if endpoint else "", _blocking_reason(message, targets, endpoint))


def _blocking_reason(message: ArchivedMessage, targets: dict[Address, Target], endpoint: Endpoint | None) -> str:
    if message.state != "dead":
        return "It is not dead."
    if beyond := queue_access.refusal_by_name(message.queue or LEASE_NAME):
        return f"It {beyond}."
    if message.why_no_retry:
        return message.why_no_retry
    if message.kind == "lease" or (endpoint and endpoint.kind != Endpoint.Kind.TRANSPORT):
        return "Handlers of the lease queue are not covered by a trial."
    if endpoint is None:
        return "No endpoint of this console receives from its queue."
    return targets[message.target].refusal() if message.target else ""


def start(
    ids: Collection[int],
    person: Any,
    origin: str,
    reason: str = "",
    *,
    of: int = 0,
    selection: str = "",
    operation: int | None = None,
) -> Trial:
    """Store the trial; the supervisor starts a process that runs it. Raises OperationRefused, DatabaseError.
    ``of``: the number of messages to choose from.
    """
    if refusal := refusal_for(person, "try"):
        raise OperationNotAllowed(f"Nothing was tried: {refusal}.")
    with queue_database().read_session() as connection:
        found = candidates(connection, ids)
    if not found:
        raise EmptySelection("Nothing was tried: none of these messages is in the archive.")
    now = database_clock.now()
    Trial.objects.filter(created_at__lt=now - KEPT).delete()
    about = {"who": name_of(person), "origin": origin, "reason": reason}
    with transaction.atomic():
        trial = Trial.objects.create(
            **about, selection=selection, operation_id=operation, of=max(of, len(found)), until=now + WITHIN
        )
        TrialItem.objects.bulk_create(_items(trial, found))
        AuditEntry.objects.create(
            **about,
            verb="try",
            noun="message",
            subject=_subject(found),
            count=len(found),
            after={"trial": trial.pk},
            operation_id=operation,
        )
        notify.announce(notify.ENDPOINT)  # wakes the supervisor
    return trial


def _items(trial: Trial, found: list[Candidate]) -> list[TrialItem]:
    return [
        TrialItem(
            trial=trial,
            position=position,
            archive_id=each.message.id,
            endpoint=each.endpoint,
            message_type=each.message.message_type or "",
            died_of=each.message.exception_type or "",
            outcome=TrialItem.Outcome.REFUSED if each.blocking_reason else "",
            why=each.blocking_reason,
        )
        for position, each in enumerate(found, 1)
    ]


def _subject(found: list[Candidate]) -> str:
    queues = sorted({each.message.queue or "lease queue" for each in found})
    return queues[0][:400] if len(queues) == 1 else f"{len(queues)} queues"


TOO_LATE = "Nobody tried it in time: no supervisor ran, or the messages before it took too long."


def results(trial: Trial) -> list[TrialItem]:
    """Return the items. Once the trial is over, untried ones show an unknown outcome; do not save them."""
    is_over = database_clock.now() >= trial.until
    items = list(trial.items.all())
    for each in items:
        if is_over and each.outcome == TrialItem.Outcome.WAITING:
            each.outcome, each.why = TrialItem.Outcome.UNKNOWN, TOO_LATE
    return items
